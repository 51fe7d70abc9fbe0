"""Tiles that a product begins to read while the rest of them still arrives: each part of the copy has a word of its own.

A tile that takes longer to come than its first byte does is worth it, where it comes in panels of columns along which a product
sums: the product waits for each panel just before it reads it.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...hardware import TargetInfo
from ...inference.bulk import BoxCopy
from ...inference.plan import TilePlan
from ...inference.schedule.engines import COPY
from ...inference.schedule.model import SIGNAL
from ...inference.schedule.program import Schedule, Token
from ...program import Gemm, Stmt
from ...program.visit import written_buffers


@dataclass(frozen=True, slots=True)
class Arriving:
    """``reader``: the product that waits for the parts one by one. ``parts``: how many there are, all of one size."""

    reader: str
    parts: int


def arriving(
    plan: TilePlan, schedule: Schedule, ops: dict[str, Stmt], kept: frozenset[str]
) -> dict[str, Arriving]:
    """By token: copies of a loop that come in parts. ``ops``: its statements. ``kept``: copies that come as a whole."""
    out: dict[str, Arriving] = {}
    for token in schedule.tokens.values():
        copy = token.producers[0]
        if token.kind != SIGNAL or len(token.producers) > 1 or copy not in plan.bulk or copy in kept:
            continue
        panels = _panels(plan.bulk[copy])
        reader = _first(schedule, token)
        s = ops.get(reader)
        if panels > 1 and reader in plan.engines and isinstance(s, Gemm) and _along(s, ops[copy]):
            if _slow(plan.bulk[copy], plan.info):
                out[token.name] = Arriving(reader, panels)
    return out


def _panels(copy: BoxCopy) -> int:
    """Panels of columns that the boxes of a copy fill one after the other."""
    return len({p.shift[-1] for p in copy.pieces})


def _first(schedule: Schedule, token: Token) -> str:
    """Who waits for a token first in each iteration, if that is in the slot that is just filled; else ""."""
    found = [(op, w) for op, w in schedule.waits_for(token.name)]
    own = [(op, w) for op, w in found if w.distance in (0, token.slots)]
    return own[0][0] if len(own) == 1 == len(found) else ""


def _along(product: Gemm, copy: Stmt) -> bool:
    """Whether a product sums along the rows of the whole tile that a copy fills, and reads it once."""
    filled = {b.storage for b in written_buffers(copy)}
    rows = [
        r.whole
        for r, along in ((product.a, not product.transpose_a), (product.b, product.transpose_b))
        if r.buffer.storage in filled and along
    ]
    others = [r for r in (product.a, product.b) if r.buffer.storage in filled]
    return rows == [True] and len(others) == 1


def _slow(copy: BoxCopy, info: TargetInfo) -> bool:
    """Whether the bytes of a copy take longer than the first of them."""
    engine = next((e for e in info.engines if e.name == COPY), None)
    return engine is not None and engine.rate > 0 and copy.bytes > engine.rate * engine.latency
