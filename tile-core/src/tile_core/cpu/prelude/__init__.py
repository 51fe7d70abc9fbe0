"""The functions that generated code calls, written as LLVM IR: mathematics, narrow floats, atomics, matrix products."""
