"""Prints: each value is handed to the launcher as 64 bits, with the number of the print statement."""

from __future__ import annotations

from .. import _tvm as tvm
from ..dtypes import ALL, DType
from ..program import Print, Region
from . import numbers
from .nodes import Node, i64, known, run
from .regions import Box
from .scope import Scope
from .staging import over

LAST = -1  # the slot that ends a line


def print_(scope: Scope, s: Print) -> list[Node]:
    """One call per element, then one that ends the line.

    The launcher is told, for each value, its type and shape: ``(type, shape)``; shape is () for a single value.
    """
    reports = scope.reports
    site = len(reports.prints)
    kinds, out = [], []
    for slot, value in enumerate(s.values):
        if isinstance(value, Region):
            box = Box.of(scope, value)
            kinds.append((value.dtype.name, tuple(known(e) or -1 for e in box.shape)))
            out += over(
                scope,
                box.shape,
                lambda at, box=box, slot=slot: [_emit(scope, site, slot, box.read(at), box.dtype)],
            )
        else:
            kinds.append((value.dtype.name, ()))
            out.append(_emit(scope, site, slot, scope.value(value), value.dtype))
    reports.prints.append((s.message, tuple(kinds)))
    return [*out, run("tile.print", reports.context, i64(site), i64(LAST), i64(0))]


def _emit(scope: Scope, site: int, slot: int, value: Node, t: DType) -> Node:
    if t.is_float:
        bits = numbers.reinterpreted(numbers.cast(value, t, ALL["float64"]), "float64", "int64")
    else:
        bits = tvm.Cast("int64", value)
    return run("tile.print", scope.reports.context, i64(site), i64(slot), bits)
