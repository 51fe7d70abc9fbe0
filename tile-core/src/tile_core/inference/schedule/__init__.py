"""When each op of a loop runs, in which stream, and what it waits for."""
