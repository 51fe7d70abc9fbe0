"""Launches that begin while the one before still runs: takes the statements of a block, adds its wait and its leave to the next."""

from __future__ import annotations

from collections.abc import Sequence

from ...dtypes import HANDLE
from ...expr import Space
from ...program import For, Invoke, Stmt, While
from ...program.visit import read_buffers, statements, written_buffers
from .instructions import Succession


def waiting(unit: Succession | None, body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    """``body`` with the wait before its first access of global memory; at its end if there is none.

    A launch that never waits could be done before the one before it, and the one after it would wait for the wrong one.
    """
    if unit is None:
        return tuple(body)
    first = next((n for n, s in enumerate(body) if _reaches_out(s)), len(body))
    return (*body[:first], unit.wait(), *body[first:])


def leaving(unit: Succession | None, body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    """``body`` with the leave for the next launch behind its last loop; without loops it is given when the block ends."""
    loops = [n for n, s in enumerate(body) if isinstance(s, For | While)]
    if unit is None or not loops:
        return tuple(body)
    last = loops[-1] + 1
    return (*body[:last], unit.release(), *body[last:])


def _reaches_out(s: Stmt) -> bool:
    """Whether a statement or one in it touches a tensor, or a parameter that describes one."""
    for t in statements((s,)):
        if any(b.space is Space.GLOBAL for b in (*read_buffers(t), *written_buffers(t))):
            return True
        if isinstance(t, Invoke) and any(getattr(a, "dtype", None) == HANDLE for a in t.arguments):
            return True
    return False
