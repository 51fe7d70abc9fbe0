"""Calls of subgroup matrices as WGSL text."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tile_core.errors import InternalError
from tile_core.expr import Const, Expr
from tile_core.program import Invoke, Place

from . import matrices
from .memory import Memory


def printed(memory: Memory, text: Callable[[Expr], str], s: Invoke) -> Iterator[str]:
    """The lines of one call."""
    places = [a for a in s.arguments if isinstance(a, Place)]
    numbers = [a.value for a in s.arguments if isinstance(a, Const)]
    cells = [f"{memory.of(p.buffer).name}[{text(p.indices[0])}]" for p in places if matrices.is_matrix(p)]
    outside = [
        f"&{memory.of(p.buffer).name}, u32({text(memory.at(p.buffer, p.indices))})"
        for p in places
        if not matrices.is_matrix(p)
    ]
    match s.function:
        case matrices.CLEAR:
            yield f"{cells[0]} = {places[0].type}();"
        case matrices.LOAD:
            order = "col_major" if numbers[1] else "row_major"
            yield f"{cells[0]} = subgroupMatrixLoad<{places[0].type}, {order}>({outside[0]}, {numbers[0]}u);"
        case matrices.STORE:
            yield f"subgroupMatrixStore<row_major>({outside[0]}, {cells[0]}, {numbers[0]}u);"
        case matrices.MULTIPLY:
            c, a, b = cells
            yield f"{c} = subgroupMatrixMultiplyAccumulate({a}, {b}, {c});"
        case _:
            raise InternalError(f"{s.function} is no call of matrices", s.span)
