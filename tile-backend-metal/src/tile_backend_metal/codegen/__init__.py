"""Plans in, Metal Shading Language out."""

from __future__ import annotations

from .emit import MetalCodegen

__all__ = ["MetalCodegen"]
