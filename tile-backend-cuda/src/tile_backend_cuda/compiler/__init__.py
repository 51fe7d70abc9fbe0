"""CUDA C++ to cubins: NVRTC, or nvcc by option. What the compiler says is kept, and read for what costs speed."""

from __future__ import annotations

from .compiling import CudaCompiler

__all__ = ["CudaCompiler"]
