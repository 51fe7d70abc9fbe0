"""Where the elements of a tile live: layouts as digits on named axes, their algebra, and what memory accesses they make."""

from __future__ import annotations

from .f2 import BitMap
from .layout import Axis, Iter, Layout, normal, same

__all__ = ["Axis", "BitMap", "Iter", "Layout", "normal", "same"]
