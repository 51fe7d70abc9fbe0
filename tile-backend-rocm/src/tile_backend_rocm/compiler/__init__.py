"""HIP C++ source to a code object by clang; needs no ROCm."""

from __future__ import annotations

from .compiling import RocmCompiler

__all__ = ["RocmCompiler"]
