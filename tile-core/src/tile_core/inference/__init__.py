"""Everything the user did not write: layouts, thread maps, instructions. Takes a tile program and target facts, gives a plan."""
