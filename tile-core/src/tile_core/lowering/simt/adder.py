"""A thread beside those that copy, which begins the engine's sums of tiles that the user's threads have staged."""

from __future__ import annotations

from dataclasses import dataclass

from ...expr import Expr, Var, binary, const
from ...inference.teams import Teams
from ...program import AtomicTile, For, Launch, Place, Stmt
from .context import Context
from .instructions import BulkEngines
from .signals import Signals

FULL, EMPTY = "staged", "taken"  # words of each group: its tiles are written; they have been read


@dataclass
class Adder:
    """``op``: the sum that it begins, in ``loop``; "" if it has none. ``instance``: of the iteration that is lowered."""

    context: Context
    engines: BulkEngines
    groups: int
    group: int
    loop: str = ""
    op: str = ""
    signals: Signals | None = None
    instance: Expr = const(0)

    @staticmethod
    def of(
        context: Context, engines: BulkEngines, launch: Launch, loops: dict[str, For], groups: int, group: int
    ) -> Adder:
        """That of a launch with one sum, in one of its scheduled loops."""
        graph, found = context.plan.graph, list[tuple[str, str]]()
        for name, loop in loops.items():
            ops = (graph.names.get(id(s), "") for s in loop.body if isinstance(s, AtomicTile))
            found += [(name, op) for op in ops if op in context.plan.adds]
        if len(found) != 1 or Teams.of(launch) is not None or context.plan.adds[found[0][1]].groups != groups:
            return Adder(context, engines, groups, group)
        return Adder(context, engines, groups, group, *found[0])

    @property
    def words(self) -> dict[str, int]:
        """Words of the launch by name, and how many arrive at each: every subgroup of a group; the thread that adds."""
        if not self.op:
            return {}
        each = self.group // self.context.plan.info.subgroup
        return {f"{name}{g}": n for name, n in ((FULL, each), (EMPTY, 1)) for g in range(self.groups)}

    def has(self, op: str) -> bool:
        return bool(self.op) and op == self.op

    def word(self, name: str, group: Expr | int) -> Place:
        assert self.signals is not None
        return self.signals.own(f"{name}0", group)

    def read(self, group: Expr | Var) -> Stmt:
        """Wait until the engine has read what the group staged in the iteration before. At first there is nothing to wait for."""
        parity = binary("truncmod", binary("+", self.instance, 1), 2)
        return self.engines.wait(self.word(EMPTY, group), self.context.simple(parity))

    def tell(self, group: Expr | Var) -> Stmt:
        return self.engines.arrive(self.word(FULL, group))

    def staged(self, group: int, instance: Expr) -> Stmt:
        """Wait until a group has staged its part."""
        parity = self.context.simple(binary("truncmod", instance, 2))
        return self.engines.wait(self.word(FULL, group), parity)

    def taken(self, group: int) -> Stmt:
        return self.engines.arrive(self.word(EMPTY, group))
