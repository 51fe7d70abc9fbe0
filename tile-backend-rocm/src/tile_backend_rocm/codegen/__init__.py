"""Plans to HIP C++ text."""

from __future__ import annotations

from .emit import RocmCodegen

__all__ = ["RocmCodegen"]
