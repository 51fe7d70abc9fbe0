"""One file per kind of op: how its statement becomes an op of the problem, and what it demands of layouts."""
