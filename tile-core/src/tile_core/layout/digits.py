"""Constructors of digits and of layouts made from them: takes extents and strides, gives iterators on a named axis."""

from __future__ import annotations

from .layout import Axis, Iter, Layout, Shape

Digits = tuple[Iter, ...]


def lane(extent: int, stride: int = 1) -> Iter:
    """A digit of the thread number; ``stride`` in threads."""
    return Iter(extent, stride, Axis.THREAD)


def reg(extent: int, stride: int = 1) -> Iter:
    """A digit of the register number; ``stride`` in elements."""
    return Iter(extent, stride, Axis.REGISTER)


def mem(extent: int, stride: int) -> Iter:
    """A digit of the memory address; ``stride`` in elements."""
    return Iter(extent, stride, Axis.MEMORY)


def tile(shape: Shape, *dims: Digits) -> Layout:
    """A layout of ``shape`` from the digits of each dimension, most significant first. Raises ``ValueError`` as ``Layout``."""
    return Layout(shape, tuple(it for digits in dims for it in digits))
