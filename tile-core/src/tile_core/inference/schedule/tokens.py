"""From times to programs with tokens: who waits for what.

Each demanded dependence that is not kept yet gets a wait. Then waits without which all are still kept go, tokens that are
waited for in the same places become one, and each gets as many slots as it needs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from .cooperative import Meetings, crossing, meetings
from .model import BARRIER, GROUP, INTERLOCK, MEET, RELAY, SIGNAL, Body, Dep, Op, done, work
from .order import Label, Order
from .pressure import pressure
from .program import Places, Schedule, Step, Token, Wait
from .relays import summed
from .slots import sized
from .timing import Timing

SPARE = 16  # registers that should be left over
MEETING = 4  # clocks of a barrier whose warps all arrive together


def synthesised(body: Body, deps: Sequence[Dep], times: Timing) -> Schedule:
    """The schedule of a body that has its relays. ``deps``: what memory demands, without the relays' own."""
    bounds = work(body.ops)
    if times.bound > max(bounds.values()):
        bounds["cycle"] = times.bound
    streams = {
        s.name: rotated(body, s.name, times, s.cooperative and bool(crossing(body, deps, s.name)))
        for s in body.streams
    }
    met: list[tuple[Meetings, dict[int, str]]] = []
    for s in body.streams:
        if s.cooperative:
            found = meetings(body, deps, s.name, streams[s.name], times.depth, times)
            body, streams, names = _with_barriers(body, streams, found)
            met.append((found, names))
    draft = Draft(body, tuple(deps), times, streams)
    for o in body.ops:
        if o.kind == MEET:
            draft.wait(o.name, Wait(o.name, 0), Token(o.name, BARRIER, (o.name,)))
    for found, names in met:
        draft.publish(found, names)
    draft.keep()
    draft.prune()
    return draft.schedule(bounds)


def rotated(body: Body, stream: str, times: Timing, meets: bool = False) -> tuple[Step, ...]:
    """The steps of a stream in issue order, turned so that the prologue is shortest.

    With ``meets`` first of all so that few products are at work where an iteration ends: behind a barrier the compiler does not
    know any more which ones were begun before (NVRTC's C7514), and waits for each. Where registers are scarce before that so that
    products of few iterations are in a step: what iterations hand over, and the first and last steps by themselves, takes more.
    """
    mine = [o for o in body.ops if o.stream == stream]
    scarce = meets and 0 < body.stream[stream].budget < pressure(body, times, stream) + SPARE
    interval, found = times.interval, list[tuple[tuple[int, ...], int, dict[str, int]]]()
    begins = {times.issue[o.name] % interval for o in mine} if times.origin is None else {times.origin}
    for origin in sorted(begins) if mine else ():
        stage = {o.name: (times.issue[o.name] - origin) // interval for o in mine}
        low = min(stage.values())
        working = sum(_works_at(body, times, o, origin) for o in mine) if meets else 0
        parts = len({stage[o.name] for o in mine if o.asynchronous}) if scarce else 0
        key = parts, working, max(stage.values()) - low, sum(stage.values()) - low * len(mine)
        found.append((key, origin, {n: s - low for n, s in stage.items()}))
    if not found:
        return ()
    _, origin, stage = min(found, key=lambda f: f[:2])
    order = sorted(mine, key=lambda o: ((times.issue[o.name] - origin) % interval, not o.asynchronous))
    return tuple(Step(o.name, stage[o.name]) for o in order)


def _works_at(body: Body, times: Timing, o: Op, clock: int) -> bool:
    """Whether a product that only its stream sees the end of is at work at a clock of the interval."""
    grouped = o.asynchronous and body.observed(o.name) == GROUP
    since = (clock - times.issue[o.name]) % times.interval
    return grouped and 0 < since < times.start[o.name] - times.issue[o.name] + o.span


def _with_barriers(
    body: Body, streams: Mapping[str, tuple[Step, ...]], found: Meetings
) -> tuple[Body, dict[str, tuple[Step, ...]], dict[int, str]]:
    """The body and the steps with an op for each barrier, and its name by gap; numbers run on over all streams."""
    first = sum(1 for o in body.ops if o.kind == MEET)
    names = {gap: f"barrier{first + i}" for i, gap in enumerate(found.gaps)}
    steps: list[Step] = []
    for i, s in enumerate(found.steps):
        if i in names:
            steps.append(Step(names[i], 0))
        steps.append(s)
    ops = (Op(name, found.stream, latency=MEETING, kind=MEET) for name in names.values())
    return replace(body, ops=(*body.ops, *ops)), {**streams, found.stream: tuple(steps)}, names


@dataclass
class Draft:
    """A program in the making: fixed steps, and waits that come and go. ``ways``: the waits that keep each dependence."""

    body: Body
    deps: tuple[Dep, ...]
    times: Timing
    streams: Mapping[str, tuple[Step, ...]]
    waits: dict[str, list[Wait]] = field(default_factory=dict[str, "list[Wait]"])
    ways: dict[Dep, list[Label]] = field(default_factory=dict[Dep, "list[Label]"])

    def __post_init__(self) -> None:
        self.places = Places.of(self.streams)
        self.order = Order(self.body, self.places)

    @property
    def tokens(self) -> dict[str, Token]:
        return self.order.tokens

    def wait(self, op: str, wait: Wait, token: Token) -> None:
        self.waits.setdefault(op, []).append(wait)
        self.order.add(op, wait, token)

    def drop(self, op: str, wait: Wait) -> None:
        self.waits[op].remove(wait)
        self.order.remove((op, wait))

    def publish(self, found: Meetings, names: Mapping[int, str]) -> None:
        """Each warp's own asynchronous part is complete before the barrier that shows it to the others."""
        for d in found.crossing:
            if self.body.op[d.u].asynchronous:
                gap = found.last(d, found.gaps)
                distance = self.places.gap(d.u, names[gap]) + found.slack(d, gap)
                self.demand(distance, d.u, names[gap], self.body.observed(d.u))

    def keep(self) -> None:
        """Add a wait for each dependence that is not kept yet: counts first, then near ones, in program order."""
        wanted = sorted(
            set(self.wanted()),
            key=lambda w: (w[3] != GROUP, w[0], self.places.at[w[2]], self.places.at[w[1]], w[2], w[1]),
        )
        for distance, u, v, kind in wanted:
            if self.order.way(Dep(u, v, distance, "RAW", self._storage(u, v)), {}) is None:
                self.demand(distance, u, v, kind)

    def _storage(self, u: str, v: str) -> str:
        """Some storage between two ops; none for a relay."""
        return next((d.storage for d in self.deps if (d.u, d.v) == (u, v)), "")

    def wanted(self) -> Iterator[tuple[int, str, str, str]]:
        """(distance, u, v, kind of token) of each dependence that program order does not give."""
        for d in summed(self.body, self.deps):
            distance, u, v = d.at(self.times.depth), self.body.op[d.u], self.body.op[d.v]
            if u.stream == v.stream:
                if u.asynchronous and (not d.queued or self._crosses(d)):
                    yield distance, d.u, d.v, self.body.observed(d.u)
            elif done(d.u) in self.body.op:
                yield 0, d.u, done(d.u), GROUP
                yield distance, done(d.u), d.v, SIGNAL
            else:
                yield distance, d.u, d.v, SIGNAL

    def _crosses(self, d: Dep) -> bool:
        """Whether a dependence inside a stream is between different warps too: each has a queue of its own."""
        return self.body.stream[self.body.op[d.v].stream].cooperative and self.body.shared(d.storage)

    def demand(self, distance: int, u: str, v: str, kind: str) -> None:
        """Let v wait for u at ``distance``; where the newest instance stands for older ones, one wait per token is enough."""
        o = self.body.op[u]
        name, value = f"{u}->{self.body.op[v].stream}", distance
        if kind in (GROUP, INTERLOCK):
            name = f"{o.stream}.{o.unit}:{u}"
        if kind == GROUP:
            value = self.places.pending(self.body.queue(u), u, v, distance)
        token = self.tokens.get(name) or Token(name, kind, (u,))
        if not o.asynchronous or self.body.in_order(u):
            for old in [w for w in self.waits.get(v, ()) if w.token == name]:
                value = min(value, old.distance)
                self.drop(v, old)
        wait = Wait(name, value)
        if wait not in self.waits.get(v, ()):
            self.wait(v, wait, token)

    def prune(self) -> None:
        """Drop waits without which every dependence is still kept; then let more be pending at the others.

        One that is needed now is still needed when others are gone, so each is looked at once.
        """
        self.ways = {d: self.order.way(d, self.times.depth) or [] for d in self.deps}
        self._prune()
        for op, waits in self.waits.items():
            for w in [w for w in waits if self.tokens[w.token].kind == GROUP]:
                self._loosen(op, w)

    def _loosen(self, op: str, w: Wait) -> None:
        """Let as many ops be pending at a wait as dependences allow. Without it one is not kept, so this ends."""
        token = self.tokens[w.token]
        looser = replace(w, distance=w.distance + 1)
        users = [d for d, way in self.ways.items() if (op, w) in way]
        self.drop(op, w)
        self.wait(op, looser, token)
        new = self._ways(users)
        if new is not None:
            self.ways |= new
            self._loosen(op, looser)
        else:
            self.drop(op, looser)
            self.wait(op, w, token)

    def _prune(self) -> None:
        users: dict[Label, set[Dep]] = {}
        for d, way in self.ways.items():
            for label in way:
                users.setdefault(label, set()).add(d)
        for label in [(op, w) for op, waits in self.waits.items() for w in waits]:
            if self.tokens[label[1].token].kind == INTERLOCK:
                continue
            new = self._ways(sorted(users.get(label, ()), key=str), label)
            if new is None:
                continue
            self.drop(*label)
            for d, way in new.items():
                for old in self.ways[d]:
                    users[old].discard(d)
                for x in way:
                    users.setdefault(x, set()).add(d)
            self.ways |= new

    def _ways(self, deps: Sequence[Dep], without: Label | None = None) -> dict[Dep, list[Label]] | None:
        """How each of some dependences is kept, without a wait; None if one is not."""
        new: dict[Dep, list[Label]] = {}
        for d in deps:
            way = self.order.way(d, self.times.depth, without)
            if way is None:
                return None
            new[d] = way
        return new

    def schedule(self, bounds: Mapping[str, int]) -> Schedule:
        """The program as it stands, with merged tokens and enough slots."""
        waiting = {op: tuple(w) for op, w in self.waits.items() if w}
        heard = {w.token for waits in waiting.values() for w in waits}
        tokens = {n: t for n, t in self.tokens.items() if n in heard}
        arrive = {u for t in tokens.values() for u in t.producers}
        dead = {
            o.name
            for o in self.body.ops
            # a relay may live on as a place to wait at
            if o.kind == RELAY and o.name not in arrive and o.name not in waiting
        }
        dead |= {o.name for o in self.body.ops if o.kind == MEET and o.name not in waiting}
        body = replace(self.body, ops=tuple(o for o in self.body.ops if o.name not in dead))
        tokens, waiting = _merged(tokens, waiting)
        streams = {
            name: tuple(
                replace(s, waits=_sorted(waiting.get(s.op, ()), tokens)) for s in steps if s.op not in dead
            )
            for name, steps in self.streams.items()
        }
        depth, interval = self.times.depth, self.times.interval
        return sized(Schedule(streams, tokens, depth, interval, bounds, self.deps, body, self.times))


def _sorted(waits: Sequence[Wait], tokens: Mapping[str, Token]) -> tuple[Wait, ...]:
    """Counts first, a barrier last: what a warp shows to the others must be complete when it arrives."""
    return tuple(
        sorted(waits, key=lambda w: (tokens[w.token].kind == BARRIER, tokens[w.token].kind != GROUP))
    )


Waiting = dict[str, tuple[Wait, ...]]


def _merged(tokens: dict[str, Token], waiting: Waiting) -> tuple[dict[str, Token], Waiting]:
    """Signals that are waited for in the same places at the same distances are one with several producers."""
    groups: dict[tuple[tuple[str, int], ...], list[Token]] = {}
    for t in tokens.values():
        if t.kind == SIGNAL:
            uses = sorted(
                (op, w.distance) for op, waits in waiting.items() for w in waits if w.token == t.name
            )
            groups.setdefault(tuple(uses), []).append(t)
    for same in groups.values():
        if len(same) > 1:
            name = "+".join(t.producers[0] for t in same) + "->" + same[0].name.rpartition("->")[2]
            old = {t.name for t in same}
            tokens = {n: t for n, t in tokens.items() if n not in old}
            tokens[name] = Token(name, SIGNAL, tuple(u for t in same for u in t.producers))
            waiting = {
                op: tuple(dict.fromkeys(replace(w, token=name) if w.token in old else w for w in waits))
                for op, waits in waiting.items()
            }
    return tokens, waiting
