"""Compiled kernels on a device: cubin in, calls out. ``outline`` reads the launch specification, the rest runs it."""

from __future__ import annotations

from .loading import CudaLauncher

__all__ = ["CudaLauncher"]
