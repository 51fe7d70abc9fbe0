"""Matrix operands in shared memory: from a tile and its layout to the descriptors that the matrix units read.

PTX ISA, "Matrix Descriptor Format" and "Shared Memory Matrix Layout"; tcgen05 has the same layouts.
"""

from __future__ import annotations

from math import prod

from tile_core.dtypes import dtype
from tile_core.expr import Expr, Var, binary, const
from tile_core.layout.layout import Axis, Layout, grouped
from tile_core.lowering.simt.boxes import Operand
from tile_core.program import Invoke, Place, Stmt

UINT64 = dtype("uint64")


def descriptor(helper: str, result: Var, x: Operand, at: tuple[Expr, Expr], along_outer: bool) -> Stmt:
    """``result`` says where the part of an operand from ``at`` on begins and how it lies, by a helper of the prelude.

    ``along_outer``: contiguous along m or n, not along k.
    """
    span, (leading, stride) = span_of(x.layout, x.buffer.dtype.bits), _steps(x, along_outer)
    start = binary("+", x.offset, _element(x.layout, at))
    place = Place(x.buffer, (start,), "r", window=True)
    return Invoke(helper, (place, const(leading), const(stride), const(span)), result)


def moved(first: Var, x: Operand, at: tuple[int, int]) -> Expr:
    """The descriptor of the part that begins ``at`` further."""
    plain = Layout(x.layout.shape, x.layout.iters)
    bytes = plain.place(at).get(Axis.MEMORY, 0) * x.buffer.dtype.bits // 8
    return binary("+", first, const(bytes >> 4, UINT64)) if bytes else first


def _element(layout: Layout, at: tuple[Expr, Expr]) -> Expr:
    """The element at a place whose coordinates are multiples of whole digits, before the swizzle."""
    groups = grouped(layout)
    if groups is None:
        raise ValueError(f"{layout} is no layout of an operand")
    out: Expr = const(0)
    for x, group in zip(at, groups, strict=True):
        rest = prod(i.extent for i in group)
        for it in group:
            rest //= it.extent
            digit = binary("%", binary("//", x, rest), it.extent)
            out = binary("+", out, binary("*", digit, it.stride))
    return out


def span_of(layout: Layout, bits: int) -> int:
    """Bytes of the swizzle of a tile: 0, 32, 64 or 128."""
    moved = [c ^ (1 << n) for n, c in enumerate(layout.swizzle.columns)]
    return {0: 0, 1: 32, 2: 64, 3: 128}[sum(1 for m in moved if m)]


def _steps(x: Operand, along_outer: bool) -> tuple[int, int]:
    """Leading and stride byte offsets of a descriptor.

    Contiguous along k: ``stride`` to the next 8 rows, ``leading`` to the next 16 bytes along k (not used with a swizzle).
    Contiguous along m or n: ``leading`` to the next span along it, ``stride`` to the next 8 along k; without a swizzle the other
    way round.
    """
    bits, span = x.buffer.dtype.bits, span_of(x.layout, x.buffer.dtype.bits)
    plain = Layout(x.layout.shape, x.layout.iters)
    rows, columns = x.layout.shape

    def bytes_at(row: int, column: int) -> int:
        if row >= rows or column >= columns:
            return 16  # there is no next one: any legal value
        return plain.place((row, column)).get(Axis.MEMORY, 0) * bits // 8

    down, along = bytes_at(8, 0), bytes_at(0, (span or 16) * 8 // bits)
    if not along_outer:
        return (along if not span else 16), down
    return (along, down) if span else (down, along)
