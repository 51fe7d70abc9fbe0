"""MSL in, checked by our own rules; an artifact of the text, or of what Apple's toolchain makes of it, out."""

from __future__ import annotations

from .compiling import MetalCompiler

__all__ = ["MetalCompiler"]
