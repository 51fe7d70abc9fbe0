"""Short loops written out: takes statements, gives them without the loops that are meant to be unrolled.

WGSL has no way to ask for it, and compilers behind it keep private arrays in memory when an index is a variable. Written out, the
indices are numbers and the arrays become registers.
"""

from __future__ import annotations

from collections.abc import Sequence

from tile_core.expr import Const, Var, const, expr, substitute
from tile_core.program import Alloc, Break, Continue, For, If, Stmt, While
from tile_core.program.visit import bodies, defined, mapped, statements

LIMIT = 4096  # statements that one loop may become


def unrolled(body: Sequence[Stmt], limit: int = LIMIT) -> tuple[Stmt, ...]:
    """``body`` with every loop of kind ``unroll`` that is short enough as a sequence."""
    out: list[Stmt] = []
    for s in body:
        inner = mapped(s, lambda x: x, lambda b: unrolled(b, limit)) if bodies(s) else s
        if isinstance(inner, For) and _worth(inner, limit):
            out += written_out(inner)
        else:
            out.append(inner)
    return tuple(out)


def _worth(s: For, limit: int) -> bool:
    if s.kind != "unroll" or not isinstance(s.extent, int) or not isinstance(s.start, Const):
        return False
    return s.extent * sum(1 for _ in statements(s.body)) <= limit and not leaves(s.body)


def leaves(body: Sequence[Stmt]) -> bool:
    """Whether a loop around ``body`` is left or begun anew in it."""
    for s in body:
        if isinstance(s, Break | Continue):
            return True
        if isinstance(s, If) and (leaves(s.then) or leaves(s.other)):
            return True
    return False


def written_out(s: For) -> list[Stmt]:
    """All iterations of a loop whose extent is a number."""
    out: list[Stmt] = []
    names = any(isinstance(t, Alloc) or (defined(t) and not isinstance(t, For | While)) for t in s.body)
    for n in range(s.extent if isinstance(s.extent, int) else 0):
        turn = iteration(s, n)
        out += [If(const(True), turn)] if names and turn else turn
    return out


def iteration(s: For, n: int) -> tuple[Stmt, ...]:
    """The body of iteration number ``n``."""
    if s.var is None:
        return s.body
    start = expr(s.start)
    first = int(start.value) if isinstance(start, Const) else 0
    value = const(first + n * s.step, s.var.dtype)
    return tuple(replaced(t, s.var, value) for t in s.body)


def replaced(s: Stmt, v: Var, value: Const) -> Stmt:
    """A statement with a variable replaced by a number."""
    values = {v: value}
    return mapped(s, lambda x: substitute(x, values), lambda b: tuple(replaced(t, v, value) for t in b))
