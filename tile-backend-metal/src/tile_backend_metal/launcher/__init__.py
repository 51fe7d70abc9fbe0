"""Artifacts onto the Mac's GPU: for tensors of torch through torch's own library, for arrays of the host through PyObjC."""

from __future__ import annotations

from .loading import MetalKernel, MetalLauncher

__all__ = ["MetalKernel", "MetalLauncher"]
