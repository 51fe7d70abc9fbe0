"""Tokens that anybody may wait for: words in shared memory, their slots and phases, who arrives and who waits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ...dtypes import UINT64
from ...expr import Buffer, Expr, Space, binary, const
from ...inference.schedule.program import Token, Wait
from ...program import If, Place, Stmt
from .context import Context
from .instructions import BulkEngines

SIGNAL = "signal"


@dataclass
class Signals:
    """``named``: the tokens of a launch, each with the name of its loop. ``arrivals``: how many arrive at a slot in one iteration.

    ``parts``: how many words a slot of a token has, each for a part of what it tells of.
    ``more``: words of the launch itself by name, and how many arrive at each (0: it is no token).
    """

    context: Context
    engines: BulkEngines
    named: Sequence[tuple[str, Token]]
    arrivals: Callable[[str, Token], int]
    parts: Callable[[str, Token], int] = lambda _loop, _token: 1
    more: Mapping[str, int] = field(default_factory=dict[str, int])
    first: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])

    def __post_init__(self) -> None:
        total = 0
        for loop, token in self.tokens():
            self.first[loop, token.name] = total
            total += token.slots * self.parts(loop, token)
        for name in self.more:
            self.first["", name] = total
            total += 1
        self.words = Buffer(
            "tokens", (max(1, total),), UINT64, Space.SHARED, number=self.context.unique("tokens")
        )
        self.context.made.append(self.words)

    def tokens(self) -> Iterator[tuple[str, Token]]:
        return ((loop, t) for loop, t in self.named if t.kind == SIGNAL)

    def place(self, loop: str, token: Token, slot: Expr, part: int = 0) -> Place:
        word = binary("*", slot, self.parts(loop, token))
        at = self.context.simple(binary("+", word, self.first[loop, token.name] + part))
        return Place(self.words, (at,), "r", window=True)

    def prepare(self) -> tuple[Stmt, ...]:
        """What one thread does before anybody uses a token."""
        places = [
            (self.place(loop, t, const(slot), part), self.arrivals(loop, t))
            for loop, t in self.tokens()
            for slot in range(t.slots)
            for part in range(self.parts(loop, t))
        ]
        places += [(self.own(name), count) for name, count in self.more.items() if count]
        return tuple(self.engines.prepare(places))

    def own(self, name: str, behind: Expr | int = 0) -> Place:
        """A word of the launch itself, or one so far behind it."""
        at = self.context.simple(binary("+", const(self.first["", name]), behind))
        return Place(self.words, (at,), "rw", window=True)

    def slot(self, token: Token, instance: Expr) -> Expr:
        return self.context.simple(binary("truncmod", instance, token.slots))

    def at(self, loop: str, token: Token, instance: Expr, part: int = 0) -> Place:
        """The word that a part of instance number ``instance`` of the token arrives at."""
        return self.place(loop, token, self.slot(token, instance), part)

    def wait(
        self, loop: str, token: Token, w: Wait, instance: Expr, only: int | None = None
    ) -> Iterator[Stmt]:
        """Wait for instance ``instance - w.distance``, if there is one; for all parts of it, or ``only`` for one.

        Instance j is in slot j % slots, and its phase has parity (j // slots) % 2. One round back is the same slot with the
        other parity; before the first round that parity counts as over, so nothing is asked then.
        """
        rounds = binary("truncdiv", instance, token.slots)
        parts = range(self.parts(loop, token)) if only is None else (only,)
        if w.distance == 0 or w.distance == token.slots:
            parity = binary("truncmod", binary("+", rounds, int(w.distance > 0)), 2)
            for part in parts:
                yield self.engines.wait(self.at(loop, token, instance, part), self.context.simple(parity))
            return
        before = binary("-", instance, w.distance)
        parity = self.context.simple(binary("truncmod", binary("truncdiv", before, token.slots), 2))
        all_of_it = (self.engines.wait(self.at(loop, token, before, part), parity) for part in parts)
        yield If(binary(">=", before, 0), tuple(all_of_it))

    def handed_back(self, by_engine: bool = True) -> Iterator[Stmt]:
        """Before a subgroup arrives for tiles that its threads read or wrote themselves.

        ``by_engine``: an engine writes or reads them next.

        Reads by threads and writes by the engine go different ways to shared memory (PTX ISA, "Proxies"): that the reads were
        issued first does not make them first there. Each thread that read has to say so.
        """
        if by_engine:
            yield self.engines.visible()
        yield self.engines.subgroup_sync()
