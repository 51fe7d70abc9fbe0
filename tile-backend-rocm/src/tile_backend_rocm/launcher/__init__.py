"""Code objects onto a device, and calls of their kernels, through the HIP runtime."""

from __future__ import annotations

from .loading import RocmKernel, RocmLauncher

__all__ = ["RocmKernel", "RocmLauncher"]
