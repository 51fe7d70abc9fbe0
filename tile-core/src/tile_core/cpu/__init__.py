"""The ``cpu`` target: a tile plan becomes LLVM IR, an object file, and functions that run on worker threads."""
