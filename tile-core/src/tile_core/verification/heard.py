"""What the calls in a lowered program mean: learnt while lowering asks the target's engines for them, whatever their names are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from ..expr import Buffer, Const
from ..program import Invoke, Place, Stmt


class Meaning(Enum):
    """``FENCE``: what the thread has seen done by plain accesses comes before what engines do after it. ``MEET``: the threads of a
    subgroup wait for each other. ``ARRIVE``: at a token. ``READ`` and ``WRITE``: an engine does, by its own way to shared memory.
    ``SAME``: the result is the argument. ``ONE``: the result is true in one thread of a subgroup. ``TOKEN``: something else at one.
    """

    FENCE = "fence"
    MEET = "meet"
    ARRIVE = "arrive"
    READ = "read"
    WRITE = "write"
    SAME = "same"
    ONE = "one"
    TOKEN = "token"


METHODS = {
    "visible": Meaning.FENCE,
    "subgroup_sync": Meaning.MEET,
    "arrive": Meaning.ARRIVE,
    "arrive_at": Meaning.ARRIVE,
    "expect": Meaning.ARRIVE,
    "finish": Meaning.ARRIVE,
    "wait": Meaning.TOKEN,
    "prepare": Meaning.TOKEN,
    "load": Meaning.WRITE,
    "store": Meaning.READ,
    "multiply": Meaning.READ,
    "uniform": Meaning.SAME,
    "elected": Meaning.ONE,
}


@dataclass
class Heard:
    """Stands before a target's engines and gives what they give. ``meanings``: of the functions called so far, by name.

    ``counts``: how many arrive at each word that was set up.
    """

    engines: Any
    meanings: dict[str, Meaning] = field(default_factory=dict[str, Meaning])
    counts: dict[tuple[Buffer, int], int] = field(default_factory=dict[tuple[Buffer, int], int])

    def __getattr__(self, name: str) -> Any:
        method: Any = getattr(self.engines, name)
        meaning = METHODS.get(name)
        return method if meaning is None else self._noting(method, meaning, name == "prepare")

    def _noting(self, method: Callable[..., Any], meaning: Meaning, prepares: bool) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            if prepares:
                tokens: tuple[tuple[Place, int], ...] = tuple(given[0])
                self.counts |= {(p.buffer, number(p)): n for p, n in tokens}
                given = (tokens, *given[1:])
            made: Stmt | Iterable[Stmt] = method(*given, **named)
            if isinstance(made, Stmt):
                self._note((made,), meaning)
                return made
            several = tuple(made)
            self._note(several, meaning)
            return several

        return call

    def _note(self, made: Iterable[Stmt], meaning: Meaning) -> None:
        for s in made:
            if isinstance(s, Invoke):
                self.meanings.setdefault(s.function, meaning)


def number(p: Place) -> int:
    """The word that a place with a constant index is."""
    (index,) = p.indices
    assert isinstance(index, Const)
    return int(index.value)


@dataclass(frozen=True)
class Words:
    """Where a token of a ``loop`` is: ``first`` of ``count`` words. ``arrivals``: how many the plan says arrive at each.

    ``beside``: how many arrive in all of the partial steps before and behind the loop that tells it in each iteration, for each
    number of iterations that these may be lowered for (the same ones for all tokens of a loop); () if no loop tells it. ``tiles``:
    which threads used that it tells of; ``reads``, ``writes``: those that an engine reads or writes then. ``parts``: words of one
    instance, which all are told. ``spread``: how many words in a row one call arrives at, each group of threads at its own.
    """

    loop: str
    name: str
    first: int
    count: int
    arrivals: int
    beside: tuple[int, ...] = ()
    tiles: frozenset[Buffer] = frozenset()
    reads: frozenset[Buffer] = frozenset()
    writes: frozenset[Buffer] = frozenset()
    parts: int = 1
    spread: int = 1

    def has(self, word: int) -> bool:
        """Whether a word is one of the token's."""
        return self.first <= word < self.first + self.count


@dataclass(frozen=True)
class Emitted:
    """The thread-level program of a launch: ``body``, run by so many ``threads`` of a block, ``subgroup`` of which are in step.

    ``thread``: its number's name. ``memory``: the words of ``tokens``. ``counts``: how many each of them awaits. ``sharing``: tiles
    that have some of the same bytes.
    """

    body: tuple[Stmt, ...]
    thread: Any
    threads: int
    subgroup: int
    memory: Buffer
    tokens: tuple[Words, ...]
    counts: Mapping[int, int]
    meanings: Mapping[str, Meaning]
    sharing: Mapping[Buffer, frozenset[Buffer]] = field(default_factory=dict[Buffer, "frozenset[Buffer]"])

    def at(self, word: int) -> Words | None:
        """The token that a word belongs to."""
        return next((t for t in self.tokens if t.has(word)), None)
