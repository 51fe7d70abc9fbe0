"""Fragments that a loop wants in other lanes: takes the loop and its partition, gives the loop on copies that shuffles fill."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ...expr import Buffer, Expr, Load, Space, rebuilt
from ...inference.indices import Loops, place
from ...inference.maps import loops, pushed
from ...layout.layout import Layout
from ...program import Atomic, Stmt, Store
from ...program.visit import mapped
from .context import Context
from .loops import Loop, accesses, covers
from .shuffled import shuffled


@dataclass(frozen=True)
class Nearby:
    """``loop`` on ``fragments``, which hold what its iterations touch; ``before`` fills them, ``after`` brings results back."""

    loop: Loop
    fragments: frozenset[Buffer]
    before: tuple[Stmt, ...]
    after: tuple[Stmt, ...]


def moved_near(
    context: Context,
    loop: Loop,
    layout: Layout,
    read: Mapping[Buffer, None],
    written: Mapping[Buffer, None],
) -> Nearby:
    """``read`` and ``written``: storages that are elsewhere. Those that shuffles can bring are copied, the others stay."""
    copies: dict[Buffer, Buffer] = {}
    before: list[Stmt] = []
    after: list[Stmt] = []
    for fragment in {**read, **written}:
        need = _wanted(loop, layout, fragment)
        if need is None:
            continue
        copy = context.fragment(f"{fragment.name}_near", need, fragment.dtype)
        fill = shuffled(context, fragment, copy, loop.span)
        back = shuffled(context, copy, fragment, loop.span) if fragment in written else ()
        if fill is None or back is None:
            continue
        copies[fragment] = copy
        before += fill if fragment in read or not covers(loop, fragment) else ()
        after += back
    body = tuple(_on(s, copies) for s in loop.body)
    return Nearby(replace(loop, body=body), frozenset(copies.values()), tuple(before), tuple(after))


def _wanted(loop: Loop, layout: Layout, fragment: Buffer) -> Layout | None:
    """The layout in which each thread holds the elements that its iterations touch, all at one index."""
    found = {(b, index) for b, index, _ in accesses(loop.body) if b.storage == fragment}
    if len(found) != 1 or layout.shape != loop.extents:
        return None
    ((buffer, index),) = found
    if buffer.source is not None or buffer.static_shape is None:
        return None
    vars: Loops = dict(zip(loop.vars, loops(*layout.shape), strict=True))
    places = [place(i, vars) for i in index]
    if any(p.align for p in places):
        return None
    return pushed(layout, tuple(p.index for p in places), buffer.static_shape)


def _on(s: Stmt, copies: Mapping[Buffer, Buffer]) -> Stmt:
    """The statement on the copies."""

    def value(x: Expr) -> Expr:
        if isinstance(x, Load) and x.buffer in copies:
            return Load(copies[x.buffer], tuple(value(i) for i in x.indices), span=x.span)
        return rebuilt(x, value)

    def block(body: Sequence[Stmt]) -> tuple[Stmt, ...]:
        return tuple(_on(t, copies) for t in body)

    new = mapped(s, value, block)
    if isinstance(new, Store | Atomic) and new.buffer.space is Space.FRAGMENT and new.buffer in copies:
        return replace(new, buffer=copies[new.buffer])
    return new
