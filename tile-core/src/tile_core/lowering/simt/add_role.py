"""The role that adds: one thread beside those that copy begins the sums of tiles that the user's threads have staged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from ...dtypes import BOOL, INT32
from ...expr import Expr, Load, Var, binary, const
from ...expr.intervals import Interval
from ...program import AtomicTile, Bind, For, If, Stmt, Store
from .box_add import Addition
from .role_loop import RoleLoop
from .role_split import around
from .telling import COPY

if TYPE_CHECKING:
    from .roles import Roles

ADD = "add"


@dataclass
class AddRole:
    """What the thread that adds does in a launch."""

    roles: Roles

    def statements(self) -> tuple[Stmt, ...]:
        """One thread of the subgroup behind the one that copies; nothing if the launch has no sums for it."""
        roles, context = self.roles, self.roles.context
        if not roles.adder.op or roles.adder.op not in roles.stores.sums:
            return ()
        body = tuple(t for s in roles.launch.body for t in self.adding(s))
        chosen = Var("adds", BOOL, context.unique("adds"))
        work = If(chosen, (*roles.counters.start(ADD), *roles.walk.around(body)))
        subgroup = context.plan.info.subgroup
        mine = binary("==", binary("//", context.thread, subgroup), context.threads // subgroup + 1)
        return (If(mine, (roles.engines.elected(chosen), work)),)

    def adding(self, s: Stmt) -> Iterator[Stmt]:
        """The part of ``s`` that begins sums: loops and branches around them, and scalars that these need."""
        roles = self.roles
        match s:
            case For() if id(s) in roles.names:
                if roles.names[id(s)] == roles.adder.loop:
                    yield from self._loop(s)
            case _:
                yield from around(s, roles.contains, self.adding)

    def _loop(self, s: For) -> Iterator[Stmt]:
        """For each iteration: each group's part when it is staged; then they may stage again."""
        roles, context, adder = self.roles, self.roles.context, self.roles.adder
        counter = roles.counters.of(adder.loop, ADD)
        loop = RoleLoop(roles, adder.loop, s, roles.schedules[adder.loop], COPY, counter)
        base: Expr = const(0)
        if counter is not None:
            base = Var("base", INT32, context.unique("base"))
            context.ranges[base] = Interval(0, None)
            yield Bind(base, Load(counter, ()))
        k = context.var("step", s.extent if isinstance(s.extent, int) else 1 << 31)
        step = cast(AtomicTile, loop.renamed(loop.ops[adder.op], loop.values(k)))
        add = Addition(roles.stores, step, context.plan.adds[adder.op])
        instance = binary("+", base, k)
        body: list[Stmt] = []
        for group in range(roles.stores.groups):
            body += (adder.staged(group, instance), *add.begun(group))
        body += (roles.engines.settle("store", 0), *(adder.taken(g) for g in range(roles.stores.groups)))
        yield For(k, const(0), s.extent, tuple(body), "serial", span=s.span)
        if counter is not None:
            yield Store(counter, (), binary("+", base, s.extent))
