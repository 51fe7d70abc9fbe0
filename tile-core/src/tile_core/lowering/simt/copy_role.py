"""The role that copies: one thread starts the boxes of all scheduled loops, and of tiles that are filled ahead of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...dtypes import BOOL
from ...expr import Var, binary
from ...program import Copy, For, If, Place, Stmt
from .add_role import AddRole
from .following import waiting
from .role_split import around
from .telling import COPY

if TYPE_CHECKING:
    from .roles import Roles


@dataclass
class CopyRole:
    """What the group of threads that copies does in a launch."""

    roles: Roles

    def statements(self) -> tuple[Stmt, ...]:
        roles, context = self.roles, self.roles.context
        body = tuple(t for s in roles.launch.body for t in self.copying(s))
        chosen = Var("chosen", BOOL, context.unique("chosen"))
        hints = tuple(roles.engines.keep(again, v) for again, v in roles.hints.items())
        copies = waiting(context.instructions.succession, roles.walk.around(body))
        work = If(chosen, (*hints, *roles.counters.start(COPY), *copies, *roles.drained(COPY)))
        first = context.threads + context.plan.info.subgroup
        return (
            *roles.quota(COPY),
            If(binary("<", context.thread, first), (roles.engines.elected(chosen), work)),
            *AddRole(roles).statements(),
        )

    def copying(self, s: Stmt) -> Iterator[Stmt]:
        """The part of ``s`` that starts copies: loops and branches around them, and scalars that these need."""
        roles = self.roles
        match s:
            case Copy() if id(s) in roles.leads.copies:
                yield from self._lead(s)
            case For() if id(s) in roles.names:
                if COPY in roles.schedules[roles.names[id(s)]].streams:
                    yield from roles.steps(s, COPY)
            case _:
                yield from around(s, roles.contains, self.copying)

    def _lead(self, s: Copy) -> Iterator[Stmt]:
        """Start the boxes of a tile that is filled once for each tile of the grid."""
        roles, context = self.roles, self.roles.context
        found = context.plan.leads[roles.leads.name(s)]
        yield from roles.leads.free(s, roles.signals)
        token = roles.leads.filling(s, roles.signals)
        yield roles.engines.expect(token, found.bytes)
        flat, slot = roles.ring(s.dst.buffer.storage, roles.walk.turn)
        for piece in found.pieces:
            at = [context.simple(binary("+", x, n)) for x, n in zip(found.start, piece.shift, strict=True)]
            inside = context.simple(binary("+", slot, piece.at))
            yield roles.engines.load(roles.box(found), at, Place(flat, (inside,), "w", window=True), token)
