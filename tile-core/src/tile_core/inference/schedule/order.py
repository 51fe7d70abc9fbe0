"""What surely happens before what in a program of streams and tokens, decided by distances.

Events are the begin (b) and the completion (c) of an op, once for each of two warps where its stream is cooperative: two
arbitrary warps stand for all. Program order, queues and waits order the event of iteration i - d before another one of
iteration i; on a chain the distances add up. Only iterations that exist count, so a chain may use those in [i - d, i] alone,
or barriers, which run at every kernel step. Without this rule the steady state is right and the first or last iterations are not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from .model import BARRIER, GROUP, MEET, Body, Dep
from .program import Places, Token, Wait

Event = tuple[str, int, str]  # op, warp, "b" or "c"
Label = tuple[str, Wait]  # a wait and the op that waits
State = tuple[Event, int]  # an event and how many iterations back it is
Back = tuple[Event, int, "Label | None"]
BEYOND = 9  # kernel steps that a chain of barriers may leave the iterations that exist


@dataclass
class Order:
    """Happens-before of one program. Waits may be added and taken away; program order stays. ``uneven`` as for ``Body.warps``.

    ``mates``: also who has come where, as what is started together shows (``Body.mates``).
    """

    body: Body
    places: Places
    uneven: bool = False
    mates: bool = False
    tokens: dict[str, Token] = field(default_factory=dict[str, Token])
    back: dict[Event, list[Back]] = field(default_factory=dict[Event, "list[Back]"])

    def __post_init__(self) -> None:
        self.loose = {o.name for o in self.body.ops if not self.body.in_order(o.name)}
        self.always = {o.name for o in self.body.ops if o.kind == MEET}
        streams: dict[str, list[str]] = {}
        for o in self.body.ops:
            for w in self.warps(o.name):
                for x in (w, *self.body.mates(o.name, w, self.uneven and self.mates)):
                    self._edge((o.name, x, "b"), (o.name, w, "c"), 0)
            streams.setdefault(o.stream, []).append(o.name)
        for ops in streams.values():
            for x in ops:
                end = "b" if self.body.op[x].asynchronous else "c"
                for y in ops:
                    queued = self.body.same_queue(x, y)
                    gap = self.places.gap(x, y)
                    for w in self.warps(x):
                        self._edge((x, w, end), (y, w, "b"), gap)
                        if queued:
                            self._edge((x, w, "c"), (y, w, "c"), gap)

    def warps(self, op: str) -> tuple[int, ...]:
        return self.body.warps(op, self.uneven)

    def tellers(self, token: Token, op: str) -> tuple[int, ...]:
        """The warps whose arrival for ``op`` whoever waits for the token is sure of."""
        once = token.told_once(self.body.op[op])
        return self.body.tellers(op, self.uneven) if once else self.warps(op)

    def _edge(self, a: Event, b: Event, d: int, label: Label | None = None) -> None:
        self.back.setdefault(b, []).append((a, d, label))

    def add(self, op: str, wait: Wait, token: Token) -> None:
        """``op`` waits for ``token`` too."""
        self.tokens[token.name] = token
        label = (op, wait)
        for w in self.warps(op):
            for source, target, d in self._ordered_by(op, w, wait, token):
                self._edge(source, target, d, label)

    def _ordered_by(self, op: str, w: int, wait: Wait, token: Token) -> Iterator[tuple[Event, Event, int]]:
        match token.kind:
            case kind if kind == BARRIER:
                yield from (((op, x, "b"), (op, w, "c"), 0) for x in self.warps(op) if x != w)
            case kind if kind == GROUP:
                queue = self.body.queue(token.producers[0])
                for x in queue:
                    yield (x, w, "c"), (op, w, "b"), self.places.group_gap(queue, x, op, wait.distance)
            case "interlock":
                yield from (((u, w, "c"), (op, w, "b"), wait.distance) for u in token.producers)
            case _:
                for u in token.producers:
                    yield from (((u, x, "c"), (op, w, "b"), wait.distance) for x in self.tellers(token, u))

    def remove(self, label: Label) -> None:
        """The wait is no more."""
        for w in self.warps(label[0]):
            for end in "bc":
                event = (label[0], w, end)
                self.back[event] = [x for x in self.back[event] if x[2] != label]

    def demands(self, d: Dep) -> Iterator[tuple[Event, Event]]:
        """(end of u, begin of v) for all warps between which the dependence is; where they are alike one of v stands for both."""
        for x, y in self.body.pairs(d, self.uneven):
            if y == 0 or self.uneven:
                yield (d.u, x, "c"), (d.v, y, "b")

    def way(self, d: Dep, depth: Mapping[str, int], without: Label | None = None) -> list[Label] | None:
        """The waits on chains that keep a dependence, between any two warps; None if there is none."""
        distance, found = d.at(depth), list[Label]()
        for first, then in self.demands(d):
            if first[1] == then[1] and self.in_turn(d, distance):
                continue
            chain = self.chain(first, then, distance, without)
            if chain is None:
                return None
            found += chain
        return found

    def in_turn(self, d: Dep, distance: int) -> bool:
        """Whether a warp runs u before v and is done with u by then, or its queue keeps them apart."""
        u, v = self.body.op[d.u], self.body.op[d.v]
        kept = d.queued or (u.stream == v.stream and not u.asynchronous)
        return kept and self.places.gap(d.u, d.v) <= distance

    def before(self, first: Event, then: Event, distance: int) -> bool:
        """Whether ``first`` of iteration i - distance surely comes before ``then`` of i."""
        return self.chain(first, then, distance) is not None

    def chain(
        self, first: Event, then: Event, distance: int, without: Label | None = None
    ) -> list[Label] | None:
        """The waits on a chain from ``first`` of i - distance to ``then`` of i; None if there is none.

        Of an event with ordered instances the newest that is reached stands for all older ones.
        """
        come: dict[State, tuple[State, Label | None] | None] = {(then, 0): None}
        newest: dict[Event, int] = {then: 0}
        loose, far = self._loose(first), BEYOND + distance
        work = [(then, 0)]
        for here in work:  # grows while it is walked
            node, off = here
            for event, d, label in self.back[node]:
                at = off + d
                if at >= newest.get(event, far) or (label is not None and label == without):
                    continue
                for reached in self._reached(event, at, distance):
                    state = event, reached
                    if state in come or newest.get(event, far) <= reached:
                        continue
                    come[state] = (here, label)
                    if event == first and (reached == distance or not loose):
                        return _labels(come, state)
                    if not (event[2] == "c" and event[0] in self.loose):
                        newest[event] = reached
                    work.append(state)
        return None

    def _loose(self, event: Event) -> bool:
        """Whether earlier instances of the event may come later."""
        return event[2] == "c" and event[0] in self.loose

    def _reached(self, event: Event, off: int, distance: int) -> Iterable[int]:
        """The iterations, counted back, of an event before one that is reached; only those that exist with the chain's ends."""
        if event[0] in self.always:
            return (off,) if -BEYOND < off < distance + BEYOND else ()
        if off > distance:
            return ()
        off = max(off, 0)  # if a younger instance comes before, so does this one
        # whoever comes after a loose instance has older selves that come after the older ones
        return range(off, distance + 1) if event[2] == "c" and event[0] in self.loose else (off,)

    def dead_cycle(self) -> bool:
        """Whether some event waits for itself or for its own future: a cycle of distance 0 or less."""
        edges = [(a, b, d) for b, into in self.back.items() for a, d, _ in into]
        number = {n: k for k, n in enumerate(self.back.keys() | {a for a, _, _ in edges})}
        scale = len(edges) + 1
        weights = [(number[a], number[b], d * scale - 1) for a, b, d in edges]
        value = [0] * len(number)
        for _ in range(len(number) + 1):
            changed = False
            for a, b, w in weights:
                if value[a] + w < value[b]:
                    value[b], changed = value[a] + w, True
            if not changed:
                return False
        return True


def _labels(come: Mapping[State, tuple[State, Label | None] | None], here: State) -> list[Label]:
    found: list[Label] = []
    while (step := come[here]) is not None:
        here, label = step
        if label is not None:
            found.append(label)
    return found
