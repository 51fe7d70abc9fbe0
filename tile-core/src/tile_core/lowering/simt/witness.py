"""What the verification room is told of a lowered launch with roles: its statements, its tokens and what its calls mean."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ...expr import Buffer
from ...inference.schedule.program import Schedule, Token
from ...program import Launch
from ...verification.heard import Emitted, Heard, Words
from ...verification.told import Told, partial_steps, participants, tiles_told
from .adder import EMPTY, FULL
from .instructions import Instructions
from .leads import LEAD
from .roles import Roles


def heard(instructions: Instructions) -> tuple[Instructions, Heard]:
    """The same instructions, and what is learnt of them while they are asked for."""
    ear = Heard(instructions.bulk)
    sums = None if instructions.sums is None else Heard(instructions.sums, ear.meanings, ear.counts)
    return replace(instructions, bulk=ear if instructions.bulk else None, sums=sums), ear


def emitted(roles: Roles, launch: Launch, ear: Heard) -> Emitted:
    """A launch as it is, for ``Sites``."""
    words = roles.signals.words
    return Emitted(
        launch.body,
        roles.own.thread,
        launch.thread_count,
        roles.context.plan.info.subgroup,
        words,
        tuple(_words(roles)),
        {number: count for (b, number), count in ear.counts.items() if b is words},
        ear.meanings,
        roles.places.sharing,
    )


def _words(roles: Roles) -> Iterator[Words]:
    told = {name: tiles_told(s) for name, s in roles.schedules.items()}
    tiles = roles.context.tiles
    for loop, token in roles.signals.tokens():
        found = _of_lead(roles, token) if loop == LEAD else told[loop].get(token.name, Told())
        yield Words(
            loop,
            token.name,
            roles.signals.first[loop, token.name],
            token.slots * roles.telling.parts(loop, token),
            *_arrivals(roles, loop, token),
            *(frozenset(tiles[b] for b in some) for some in (found.all, found.reads, found.writes)),
            parts=roles.telling.parts(loop, token),
        )
    yield from _of_sums(roles)


def _of_sums(roles: Roles) -> Iterator[Words]:
    """Words of sums that threads stage and another thread begins: each group tells its own, and is told that it may stage again."""
    adder, staged = roles.adder, frozenset(roles.stores.sums.values())
    if adder.op and staged:
        for name, tiles, parts, spread in (
            (FULL, staged, 1, adder.groups),
            (EMPTY, frozenset[Buffer](), adder.groups, 1),
        ):
            first, many = roles.signals.first["", f"{name}0"], adder.words[f"{name}0"]
            yield Words(
                adder.loop, name, first, adder.groups, many, (), tiles, tiles, parts=parts, spread=spread
            )


def _arrivals(roles: Roles, loop: str, token: Token) -> tuple[int, tuple[int, ...]]:
    """How many the plan has arrive at an instance of a token; and in all the partial steps beside the loop.

    Of a loop whose iterations are not known here lowering may still know how many there are at most.
    """
    if loop == LEAD:
        return roles.leads.arrivals(token), ()
    s, extent = roles.schedules[loop], roles.loops[loop].extent
    many = roles.sharing.blocks if roles.sharing and roles.telling.releases_shared(loop, token) else 1
    last = max(x.stage for x in s.steps())
    most = (extent,) if isinstance(extent, int) else (None, *range(1, last + 1))
    each = participants(s, token, roles.context.plan.info.subgroup, roles.rules.group)
    beside = (
        many * sum(n * partial_steps(s.step(u).stage, _apart(roles, s, u), trips) for u, n in each.items())
        for trips in most
    )
    return many * sum(each.values()), tuple(beside)


def _apart(roles: Roles, s: Schedule, op: str) -> int:
    """Kernel steps that stand before the loop in an op's stream: where a product of a later stage lacks an iteration there."""
    steps = s.streams[s.ops[op].stream]
    late = any(x.stage and roles.on_engine(x.op) and not roles.signals_itself(x.op) for x in steps)
    return max(x.stage for x in steps) if late else 0


def _of_lead(roles: Roles, token: Token) -> Told:
    """The tile that is filled anew once the token tells that it was read."""
    found = (s for s in roles.leads.copies.values() if token.name == f"{roles.leads.name(s)}.read")
    tiles = {s.dst.buffer.storage for s in found}
    return Told(tiles, set(), tiles)
