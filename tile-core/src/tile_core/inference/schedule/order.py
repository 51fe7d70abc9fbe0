"""What surely happens before what in a program of streams and tokens, decided by distances.

Events are the begin (b) and the completion (c) of an op, once for each of two warps where its stream is cooperative: two
arbitrary warps stand for all. Program order, queues and waits order the event of iteration i - d before another one of
iteration i; on a chain the distances add up. Only iterations that exist count, so a chain may use those in [i - d, i] alone,
or barriers, which run at every kernel step. Without this rule the steady state is right and the first or last iterations are not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from .bounds import relaxed
from .model import BARRIER, GROUP, MEET, Body, Dep
from .program import Places, Token, Wait

Event = tuple[str, int, str]  # op, warp, "b" or "c"
Label = tuple[str, Wait]  # a wait and the op that waits
Back = tuple[int, int, "Label | None"]  # an event's number, iterations back, and why
Reached = tuple[
    int, int, int, "Label | None"
]  # an event's number, iterations back, from which entry of a search, and why
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

    def __post_init__(self) -> None:
        self.loose = {o.name for o in self.body.ops if not self.body.in_order(o.name)}
        self.always = {o.name for o in self.body.ops if o.kind == MEET}
        self.number: dict[Event, int] = {}
        for o in self.body.ops:
            for w in self.warps(o.name):
                for end in "bc":
                    self.number[o.name, w, end] = len(self.number)
        self.back: list[list[Back]] = [[] for _ in self.number]
        for (op, w, end), n in self.number.items():
            if end == "c":
                begun = (w, *self.body.mates(op, w, self.uneven and self.mates))
                self.back[n] += [(self.number[op, x, "b"], 0, None) for x in begun]
                self.back[n] += [
                    (self.number[x, w, "c"], self.places.gap(x, op), None)
                    for x in (self.body.queue(op) if self.body.op[op].asynchronous else ())
                    if self.body.same_queue(x, op)
                ]

    @cached_property
    def line(self) -> list[int]:
        """By event: the number of the stream and warp that begins it; -1 for an end."""
        lines: dict[tuple[str, int], int] = {}
        return [
            lines.setdefault((self.body.op[op].stream, w), len(lines)) if end == "b" else -1
            for op, w, end in self.number
        ]

    @cached_property
    def place(self) -> list[tuple[int, int]]:
        """By event: stage and place of its op."""
        return [self.places.at[op] for op, _, _ in self.number]

    @cached_property
    def turn(self) -> list[list[Back]]:
        """By event that begins an op: what the same warp has begun or done by then."""
        out: list[list[Back]] = [[] for _ in self.number]
        for ops in self.streams.values():
            for y in ops:
                gaps = [(x, "b" if self.body.op[x].asynchronous else "c", self.places.gap(x, y)) for x in ops]
                for w in self.warps(y):
                    out[self.number[y, w, "b"]] = [
                        (self.number[x, w, last], gap, None) for x, last, gap in gaps
                    ]
        return out

    @cached_property
    def streams(self) -> dict[str, list[str]]:
        """The ops of each stream, as the body has them."""
        out: dict[str, list[str]] = {}
        for o in self.body.ops:
            out.setdefault(o.stream, []).append(o.name)
        return out

    def warps(self, op: str) -> tuple[int, ...]:
        return self.body.warps(op, self.uneven)

    def tellers(self, token: Token, op: str) -> tuple[int, ...]:
        """The warps whose arrival for ``op`` whoever waits for the token is sure of."""
        once = token.told_once(self.body.op[op])
        return self.body.tellers(op, self.uneven) if once else self.warps(op)

    def add(self, op: str, wait: Wait, token: Token) -> None:
        """``op`` waits for ``token`` too."""
        self.tokens[token.name] = token
        label = (op, wait)
        for w in self.warps(op):
            for source, target, d in self._ordered_by(op, w, wait, token):
                self.back[self.number[target]].append((self.number[source], d, label))

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
                event = self.number[label[0], w, end]
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

        Of an event with ordered instances the newest that is reached stands for all older ones, and of the ops that one warp
        has begun the last one for all before it.
        """
        goal, unordered, floor = self.number[first], self.unordered, self.floor
        newest = [distance + (BEYOND if low else 1) for low in floor]
        seen: set[tuple[int, int]] = set()
        last: dict[int, tuple[int, int]] = {}
        newest[self.number[then]] = 0
        work: list[Reached] = [(self.number[then], 0, -1, None)]
        for come, (node, off, _, _) in enumerate(work):  # grows while it is walked
            for event, d, label in (*self._turn(node, off, last), *self.back[node]):
                at = off + d
                if at >= newest[event] or (label is not None and label == without):
                    continue
                at = max(at, floor[event])  # where a younger instance comes before, so does this one
                if event in unordered:
                    # whoever comes after this instance has older selves that come after the older ones
                    older = [n for n in range(at, distance + 1) if (event, n) not in seen]
                    seen.update((event, n) for n in older)
                    work += [(event, n, come, label) for n in older]
                    if event == goal and older and older[-1] == distance:
                        return _labels(work)
                elif at < newest[event]:
                    newest[event] = at
                    work.append((event, at, come, label))
                    if event == goal:
                        return _labels(work)
        return None

    def _turn(self, event: int, off: int, last: dict[int, tuple[int, int]]) -> Sequence[Back]:
        """What the warp that begins an op has begun before it, if ``last`` does not know of a later op of that warp."""
        line = self.line[event]
        if line < 0:
            return ()
        stage, place = self.place[event]
        here = stage - off, place
        if line in last and here <= last[line]:
            return ()
        last[line] = here
        return self.turn[event]

    @cached_property
    def unordered(self) -> frozenset[int]:
        """Ends of which earlier instances may come later."""
        return frozenset(n for (op, _, end), n in self.number.items() if end == "c" and op in self.loose)

    @cached_property
    def floor(self) -> list[int]:
        """By event: the youngest iteration of it, counted back, that exists with a chain's ends; barriers are at every step."""
        return [1 - BEYOND if op in self.always else 0 for op, _, _ in self.number]

    def dead_cycle(self) -> bool:
        """Whether some event waits for itself or for its own future: a cycle of distance 0 or less."""
        edges = [(a, b, d) for b, into in enumerate(self.back) for a, d, _ in into]
        edges += (e for ops in self.streams.values() for e in self._steps(ops))
        scale = len(edges) + 1
        # a cycle of distance 0 is dead too: each of its edges counts a little
        return bool(relaxed(len(self.number), [(a, b, 1 - d * scale, 0) for a, b, d in edges], 0)[1])

    def _steps(self, ops: Sequence[str]) -> Iterator[tuple[int, int, int]]:
        """(from, to, distance) of the steps of each warp, one after the other."""
        order = sorted(ops, key=lambda o: self.places.at[o][1])
        for k, y in enumerate(order):
            x = order[k - 1]
            last, gap = "b" if self.body.op[x].asynchronous else "c", self.places.gap(x, y)
            for w in self.warps(y):
                yield self.number[x, w, last], self.number[y, w, "b"], gap


def _labels(work: Sequence[Reached]) -> list[Label]:
    """The waits on the way to the last entry of a search."""
    found: list[Label] = []
    at = len(work) - 1
    while at > 0:
        _, _, at, label = work[at]
        if label is not None:
            found.append(label)
    return found
