"""Copies of a scheduled loop that come in parts, each with a word of its own, for a product that waits for one after the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...inference.plan import TilePlan
from ...inference.schedule.arriving import panels
from ...inference.schedule.model import SIGNAL
from ...inference.schedule.program import Schedule, Token
from ...program import Stmt


@dataclass(frozen=True, slots=True)
class Arriving:
    """``reader``: the product that waits for the parts one by one. ``parts``: how many there are, all of one size."""

    reader: str
    parts: int


def arriving(
    plan: TilePlan, schedule: Schedule, ops: Mapping[str, Stmt], kept: frozenset[str]
) -> dict[str, Arriving]:
    """By token. ``ops``: the loop's statements. ``kept``: copies that come as a whole."""
    out: dict[str, Arriving] = {}
    for token in schedule.tokens.values():
        copy, reader = token.producers[0], _first(schedule, token)
        if token.kind != SIGNAL or len(token.producers) > 1 or copy in kept or copy not in plan.bulk:
            continue
        if reader in plan.engines:
            parts = panels(ops[copy], plan.bulk[copy], ops[reader])
            out |= {token.name: Arriving(reader, parts)} if parts > 1 else {}
    return out


def _first(schedule: Schedule, token: Token) -> str:
    """Who waits for a token, if that is one op, in the slot that is just filled; else ""."""
    found = [(op, w.distance in (0, token.slots)) for op, w in schedule.waits_for(token.name)]
    return found[0][0] if len(found) == 1 and found[0][1] else ""
