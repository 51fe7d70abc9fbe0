"""What two teams of threads add to a launch: who does which statement, where they meet, and the registers of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from ...dtypes import INT32
from ...expr import Buffer, Var
from ...expr.intervals import Interval
from ...hardware import BulkRules
from ...inference import quotas
from ...inference.teams import FRONT, OWN, Teams
from ...program import Alloc, Bind, Copy, For, Launch, Stmt, Sync
from ...program.visit import read_storages, written_storages
from .context import Context, Team
from .instructions import BulkEngines
from .telling import COPY

TEAMS_BARRIER, FRONT_BARRIER = 15, 14  # named barriers: of both teams, and of the front


@dataclass
class Crew:
    """``teams``: None where all threads do the same. ``repeats``: whether a block does several tiles of the grid."""

    context: Context
    launch: Launch
    rules: BulkRules
    repeats: bool

    def __post_init__(self) -> None:
        self.teams = Teams.of(self.launch)
        self.own, self.front = self.context.team, self._front()
        self.groups = self.launch.thread_count // self.rules.group

    def _front(self) -> Team:
        """The second team; it has no threads where all do the same."""
        thread = Var("front", INT32, self.context.unique("front"))
        threads = self.launch.front.threads if self.launch.front else 0
        self.context.ranges[thread] = Interval(0, max(0, threads - 1))
        return Team(FRONT, thread, threads, FRONT_BARRIER)

    @property
    def reusing(self) -> bool:
        """Whether results on their way out are staged in tiles that the loop used: nothing is copied to these behind it."""
        return self.teams is not None and not self.repeats

    def freed(self, rings: Iterable[Buffer], stream: str) -> tuple[Buffer, ...]:
        """Those of a loop's tiles that a team may use behind it."""
        free = list(rings) if self.reusing else []
        return tuple(free[0::2] if stream == OWN else free[1::2])

    def quota(self, stream: str, engines: BulkEngines, resident: int, needed: int) -> tuple[Stmt, ...]:
        """Registers move from the threads that copy to those that compute, if these could use them.

        ``needed``: registers that the tiles of one of the user's threads take at once.
        """
        group = self.rules.group
        if self.teams is not None:
            mine = quotas.apart(self.groups, group, resident)[(COPY, OWN, FRONT).index(stream)]
            return (engines.registers(mine, mine > quotas.at_first(self.groups + 2, group, resident)),)
        shares = quotas.alike(self.groups, group, resident, needed)
        if shares is None:
            return ()
        return (engines.registers(shares[stream != COPY], stream != COPY),)

    def concerns(self, s: Stmt) -> bool:
        """Whether the present team does something for a statement of the launch's body."""
        if self.teams is None or isinstance(s, Alloc | Bind | For):
            return True
        return self.context.team.stream in self.teams.of_statement(s)

    @cached_property
    def handed_over(self) -> frozenset[Buffer]:
        """Tiles that one team writes and the other reads."""
        return self.teams.handed_over if self.teams else frozenset()

    def met(self, s: Stmt, body: Iterable[Stmt]) -> Iterator[Stmt]:
        """``body``, what a team does for a statement of the launch, between the meetings of the teams that it needs."""
        tiles = frozenset[Buffer]() if isinstance(s, For) else self.handed_over
        gives, takes = bool(tiles & written_storages(s)), bool(tiles & read_storages(s))
        if (gives or takes) and self.repeats:
            yield self._both_meet()  # what was handed over in the turn before has been read
        if takes:
            yield self._both_meet()
        yield from body
        if gives or (self.reusing and isinstance(s, For)):
            yield self._both_meet()

    def _both_meet(self) -> Stmt:
        return Sync(TEAMS_BARRIER, self.own.threads + self.front.threads)

    def readers_of(self, lead: Copy) -> int:
        """Threads of the teams that read a tile filled outside of loops."""
        return self.teams.threads(self.teams.of_statement(lead)) if self.teams else self.own.threads

    def threads_of(self, stream: str) -> int:
        return self.front.threads if stream == FRONT else self.own.threads
