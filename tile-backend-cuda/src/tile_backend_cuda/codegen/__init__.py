"""Plans to CUDA C++. Takes a ``TilePlan``, gives a ``Source`` without any include."""

from __future__ import annotations

from .emit import CudaCodegen

__all__ = ["CudaCodegen"]
