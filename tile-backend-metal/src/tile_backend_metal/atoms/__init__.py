"""Matrix products of Apple GPUs as data: those that kernels use, and Metal 4's as facts."""

from __future__ import annotations

from .simdgroup import ATOMS, BFLOAT16, SIMDGROUP_8X8

__all__ = ["ATOMS", "BFLOAT16", "SIMDGROUP_8X8"]
