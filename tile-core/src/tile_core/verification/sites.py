"""What the threads of an emitted launch do at tokens and before engines: a walk over its statements, taking all ways.

An access of shared memory by a thread is *open* until the thread has passed a fence: an engine that comes after it goes another
way to shared memory, and the order of the two is not kept (PTX ISA, "Memory Consistency Model", "Proxies"; a fence anywhere
on the way from the access to the engine's keeps it). It is *alone* until the threads of its subgroup have met.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ..expr import Buffer, Expr, Space, Var, text
from ..expr.affine import linear
from ..program import Bind, For, If, Invoke, Stmt, Sync, While
from ..program.visit import bodies, places, read_buffers, written_buffers
from ..span import Span
from .heard import Emitted, Meaning
from .participants import Threads, Values

Accesses = frozenset[tuple[Buffer, str]]  # tiles that were read ("r") or written ("w")
NONE: Accesses = frozenset()


@dataclass(frozen=True, slots=True)
class State:
    """Accesses that are open, and those that are alone."""

    open: Accesses = NONE
    alone: Accesses = NONE

    def joined(self, other: State) -> State:
        return State(self.open | other.open, self.alone | other.alone)


@dataclass(frozen=True, slots=True)
class Arrival:
    """``threads`` arrive at ``word`` each time that this is reached. ``before``: their state. ``span``: the user's line."""

    word: int
    threads: int
    before: State
    span: Span | None


@dataclass(frozen=True, slots=True)
class Told:
    """What is told in an iteration of a loop that has ``depth`` - 1 loops around it, by the threads that are 1 in ``who``."""

    depth: int
    who: Values
    arrivals: list[Arrival]


@dataclass(frozen=True, slots=True)
class Unfenced:
    """An engine reads or writes a tile that threads accessed, with no fence on the way."""

    tile: Buffer
    wrote: bool
    by_engine: str
    span: Span | None


@dataclass
class Sites:
    """The walk. ``arrivals``: those of one loop's body, by whom, and how many loops are around them; of a branch that not only the
    thread's number decides those of the side that has more.
    """

    emitted: Emitted
    threads: Threads
    arrivals: list[Told] = field(default_factory=list["Told"])
    unfenced: dict[Unfenced, None] = field(default_factory=dict[Unfenced, None])
    met: dict[object, Accesses] = field(default_factory=dict[object, Accesses])
    summaries: dict[int, tuple[bool, Accesses]] = field(default_factory=dict[int, "tuple[bool, Accesses]"])
    far: dict[Var, int] = field(default_factory=dict[Var, int])
    depth: int = 0
    span: Span | None = None

    @staticmethod
    def of(emitted: Emitted) -> Sites:
        """All sites of a launch. What teams pass on where they meet comes round in another walk."""
        out, met = Sites(emitted, Threads(emitted.threads)), dict[object, Accesses]()
        while True:
            out.threads = Threads(emitted.threads, {emitted.thread: tuple(range(emitted.threads))})
            out.arrivals.clear()
            top: list[Arrival] = []
            everybody = (1,) * emitted.threads
            out.walk(emitted.body, State(), everybody, top)
            out.arrivals.append(Told(0, everybody, top))
            if out.met == met:
                return out
            met = dict(out.met)

    def walk(self, body: Sequence[Stmt], state: State, who: Values, into: list[Arrival]) -> State:
        for s in body:
            self.span = s.span or self.span
            plain, accesses = self._summary(s)
            if accesses:
                state = State(state.open | accesses, state.alone | accesses)
            if plain:
                continue
            match s:
                case For() | While():
                    state = self._loop(s, state, who, into)
                case If():
                    state = self._branch(s, state, who, into)
                case Sync():
                    state = self._meeting(s, replace(state, alone=NONE))
                case Invoke():
                    state = self._call(s, state, who, into)
                case Bind():
                    self._learn(s)
                case _:
                    pass
        return state

    def _summary(self, s: Stmt) -> tuple[bool, Accesses]:
        """Whether a statement only accesses memory, whatever is in it; and what, at least before what is in it."""
        if id(s) not in self.summaries:
            inner = [self._summary(t) for body in bodies(s) for t in body]
            engines = isinstance(s, Invoke) and s.function in self.emitted.meanings
            own = frozenset(
                (b.storage, access)
                for found, access in ((read_buffers(s), "r"), (written_buffers(s), "w"))
                for b in found
                if self._is_tile(b) and not engines
            )
            plain = not (engines or isinstance(s, Sync | Bind)) and all(p for p, _ in inner)
            self.summaries[id(s)] = plain, own.union(*(a for _, a in inner)) if plain else own
        return self.summaries[id(s)]

    def _loop(self, s: For | While, state: State, who: Values, into: list[Arrival]) -> State:
        """What the end of an iteration leaves meets the begin of the next one."""
        own: list[Arrival] = []
        seen = len(self.arrivals)
        self.depth += 1
        end = self.walk(s.body, state, who, own)
        if state.joined(end) != state:
            own.clear()
            del self.arrivals[seen:]
            end = self.walk(s.body, state.joined(end), who, own)
        if own:
            self.arrivals.append(Told(self.depth, who, own))
        self.depth -= 1
        surely = isinstance(s, For) and isinstance(s.extent, int) and s.extent > 0
        return end if surely else state.joined(end)

    def _branch(self, s: If, state: State, who: Values, into: list[Arrival]) -> State:
        asked = self.threads.values(s.condition)
        sides = ((s.then, True), (s.other, False))
        if asked is None:
            lists: list[list[Arrival]] = [[], []]
            ends = [self.walk(b, state, who, own) for (b, _), own in zip(sides, lists, strict=True)]
            into += lists[0] if len(lists[0]) >= len(lists[1]) else lists[1]
            return ends[0].joined(ends[1])
        out: State | None = None
        for body, side in sides:
            some = tuple(int(w and bool(a) == side) for w, a in zip(who, asked, strict=True))
            if any(some):
                end = self.walk(body, state, some, into)
                out = end if out is None else out.joined(end)
        return state if out is None else out

    def _meeting(self, s: Sync, state: State) -> State:
        """A barrier with a number of its own is met by several teams: what one of them left open is so for the others, too."""
        if not s.threads:
            return state
        key = (s.number if isinstance(s.number, int) else text(s.number)), s.threads
        self.met[key] = self.met.get(key, NONE) | state.open
        return replace(state, open=state.open | self.met[key])

    def _learn(self, s: Bind) -> None:
        found = self.threads.values(s.value)
        if found is not None:
            self.threads.known[s.var] = found

    def _is_tile(self, b: Buffer) -> bool:
        return b.space is Space.SHARED and b.storage is not self.emitted.memory

    def _call(self, s: Invoke, state: State, who: Values, into: list[Arrival]) -> State:
        meaning = self.emitted.meanings.get(s.function)
        match meaning:
            case Meaning.FENCE:
                return replace(state, open=NONE)
            case Meaning.MEET:
                return replace(state, alone=NONE)
            case Meaning.ARRIVE:
                self._arrive(s, state, sum(who), into)
            case Meaning.READ | Meaning.WRITE:
                self._by_engine(s, meaning is Meaning.WRITE, state)
            case Meaning.SAME | Meaning.ONE if s.result is not None:
                one = tuple(int(t % self.emitted.subgroup == 0) for t in range(self.emitted.threads))
                (given, *_) = (*s.arguments, None)
                found = (
                    one
                    if meaning is Meaning.ONE
                    else self.threads.values(given)
                    if isinstance(given, Expr)
                    else None
                )
                if found is not None:
                    self.threads.known[s.result] = found
            case _:
                pass
        return state

    def _arrive(self, s: Invoke, state: State, threads: int, into: list[Arrival]) -> None:
        """At a token, or at the same one of another block, whose address another call gave before."""
        # the constant of an index is the word of a token's first slot, or of one of its others
        tokens = (p for p in places(s) if p.buffer.storage is self.emitted.memory)
        words = [linear(p.indices[0]).constant for p in tokens]
        if s.result is not None:
            self.far.update((s.result, word) for word in words)
            return
        words += [self.far.pop(x) for x in s.arguments if isinstance(x, Var) and x in self.far]
        into += (Arrival(word, threads, state, self.span) for word in words)

    def _by_engine(self, s: Invoke, writes: bool, state: State) -> None:
        for p in places(s):
            b = p.buffer.storage
            if self._is_tile(b):
                for x in (b, *self.emitted.sharing.get(b, ())):
                    self.unfenced |= {
                        Unfenced(b, access == "w", s.function, self.span): None
                        for access in (("w", "r") if writes else ("w",))
                        if (x, access) in state.open
                    }
