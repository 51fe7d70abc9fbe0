"""The schedule of a loop: for each stream its steps in issue order, and the tokens that the steps wait for.

In a stream the newest u before v of iteration i is that of iteration i - gap(u, v). All statements about order are made with
such distances. Instance j of a token uses slot j mod slots.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from ...errors import InternalError
from ...expr import Buffer
from .model import RELAY, Body, Dep, Op
from .timing import Timing


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait for instance i - ``distance`` of a token, if there is one; for kind ``group``: how many ops may be pending."""

    token: str
    distance: int


@dataclass(frozen=True, slots=True)
class Token:
    """``producers`` arrive, each once in an iteration; if they are in a cooperative stream, each warp of it does.

    ``kind``: ``signal`` (anybody waits), ``group`` (the issuing stream waits, by count), ``interlock`` (hardware stalls the
    dependent instruction), ``barrier`` (the warps of a stream meet). ``slots``: how many instances are told apart.
    ``once``: of relays one warp of each group arrives for all of them.
    """

    name: str
    kind: str
    producers: tuple[str, ...]
    slots: int = 1
    once: bool = False

    def told_once(self, op: Op) -> bool:
        """Whether only one warp of a group arrives for a producer: nobody learns by it what the others have done."""
        return self.once and op.kind == RELAY


@dataclass(frozen=True, slots=True)
class Step:
    """At kernel step k ``op`` runs iteration k - ``stage``, after its waits, in their order."""

    op: str
    stage: int
    waits: tuple[Wait, ...] = ()


@dataclass(frozen=True)
class Places:
    """Where each op stands: its stage, and its number in its stream."""

    at: Mapping[str, tuple[int, int]]

    @staticmethod
    def of(streams: Mapping[str, tuple[Step, ...]]) -> Places:
        return Places({s.op: (s.stage, i) for steps in streams.values() for i, s in enumerate(steps)})

    def gap(self, u: str, v: str) -> int:
        """The newest u before v(i) in their stream is u(i - gap)."""
        (stage, place), (other, after) = self.at[u], self.at[v]
        return stage - other + (0 if place < after else 1)

    def group_gap(self, queue: list[str], u: str, v: str, pending: int) -> int:
        """After waiting before v(i) until ``pending`` ops of the queue are left, u(i - gap) is surely the newest complete u."""
        events: list[tuple[int, int, str, int]] = []  # (kernel step, place) of ops before v(0), newest first
        for x in queue:
            (stage, place), near = self.at[x], self.gap(x, v)
            events += [(stage - near - n, place, x, near + n) for n in range(pending + 2)]
        events.sort(reverse=True)
        return next(distance for _, _, x, distance in events[pending:] if x == u)

    def pending(self, queue: list[str], u: str, v: str, distance: int) -> int:
        """The largest count of pending ops with which u(i - distance) is complete before v(i)."""
        count = 0
        while self.group_gap(queue, u, v, count + 1) <= distance:
            count += 1
        return count


@dataclass(frozen=True)
class Schedule:
    """When the ops of a loop run. ``streams`` hold steps in issue order inside a kernel step.

    Kernel steps of a stream run from 0 to trips + stages - 2; steps without an iteration are left out, but an op of a
    ``group`` queue still counts as an empty group, and barriers are always met. ``depth``: slots of each tile that is
    rewritten (iteration i uses slot i mod depth). ``interval``: clocks from one iteration to the next. ``bounds``: lower
    bounds of it by name of unit or stream, and of a ``cycle`` of dependences if that is slower. ``deps``: what memory
    demands. ``body``: the ops with their relays and barriers. After the loop, what asynchronous ops wrote is there only when
    their stream has waited for all of them. ``solved``: a solver found it, else the search did. ``lower``: no interval is below
    that (0: nothing is known but the bounds).
    """

    streams: Mapping[str, tuple[Step, ...]]
    tokens: Mapping[str, Token]
    depth: Mapping[str, int]
    interval: int
    bounds: Mapping[str, int]
    deps: tuple[Dep, ...]
    body: Body
    times: Timing = field(repr=False)
    solved: bool = False
    lower: int = 0

    def __post_init__(self) -> None:
        names = [s.op for s in self.steps()]
        heard = {w.token for s in self.steps() for w in s.waits}
        if sorted(names) != sorted(self.body.op) or not heard <= self.tokens.keys():
            raise InternalError(f"{self.body.name}: steps {names} with tokens {sorted(self.tokens)}")

    @property
    def ops(self) -> Mapping[str, Op]:
        return self.body.op

    @property
    def everywhere(self) -> tuple[str, ...]:
        """Nodes of the loop that are no ops: each stream computes these scalars for itself, for the iteration it is at."""
        return self.body.everywhere

    @cached_property
    def rings(self) -> dict[Buffer, int]:
        """Slots of the buffers that have more than one."""
        tiles = self.body.storage
        return {
            s.buffer: self.depth[s.name] for s in tiles if s.buffer is not None and self.depth[s.name] > 1
        }

    @cached_property
    def places(self) -> Places:
        return Places.of(self.streams)

    def steps(self) -> Iterator[Step]:
        for steps in self.streams.values():
            yield from steps

    def step(self, op: str) -> Step:
        return self.streams[self.body.op[op].stream][self.places.at[op][1]]

    def stages(self, stream: str) -> int:
        """Iterations that a kernel step of the stream touches."""
        return 1 + max((s.stage for s in self.streams[stream]), default=0)

    def gap(self, u: str, v: str) -> int:
        """In their stream the newest u before v(i) is u(i - gap)."""
        return self.places.gap(u, v)

    def producers(self, kind: str) -> frozenset[str]:
        """Ops that arrive on tokens of a kind."""
        return frozenset(u for t in self.tokens.values() if t.kind == kind for u in t.producers)

    @cached_property
    def uneven(self) -> bool:
        """Whether one warp of a group tells for others."""
        return any(t.once for t in self.tokens.values())

    def told_once(self, token: Token, op: str) -> bool:
        """As ``Token.told_once``, by name."""
        return token.told_once(self.ops[op])

    def waits_for(self, token: str) -> Iterator[tuple[str, Wait]]:
        """(op, wait) of everybody who waits for a token."""
        for s in self.steps():
            yield from ((s.op, w) for w in s.waits if w.token == token)
