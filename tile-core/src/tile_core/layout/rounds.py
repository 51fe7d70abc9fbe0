"""An exchange between lanes as compile-time steps: the plan of a conversion in, swaps of registers and shuffles out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from .convert import Shuffles
from .f2 import combine, inverse_columns


@dataclass(frozen=True, slots=True)
class Swap:
    """Lanes in which an odd number of the bits of ``lanes`` are set exchange every register n with ``n ^ register``."""

    register: int
    lanes: int


@dataclass(frozen=True, slots=True)
class Round:
    """Every lane L sends register ``sent``; lane L receives into ``received``, from lane ``source(L) ^ distance``."""

    sent: int
    received: int
    distance: int


@dataclass(frozen=True, slots=True)
class Rounds:
    """``before``: swaps, then one shuffle for each register, then the swaps ``after``.

    Registers are numbered by the bits that take part. ``source``: images of the bits of a lane's number.
    """

    registers: int
    before: tuple[Swap, ...]
    source: tuple[int, ...]
    rounds: tuple[Round, ...]
    after: tuple[Swap, ...]

    @property
    def by_distance(self) -> bool:
        """Whether each lane receives from the one that differs by the bits of the distance."""
        return all(c == 1 << j for j, c in enumerate(self.source))


def rounds(plan: Shuffles) -> Rounds:
    """The steps of a plan.

    With L the sending lane, round k sends register S L ^ k (S linear, from ``across``) and arrives at lane P L ^ Q k in register
    U L ^ V k. So swaps by S make the sent register k alone, and swaps by U P^-1 the received one.
    """
    r, mask = plan.registers, (1 << plan.registers) - 1
    # lane bit -> the state of the round's subspace that is in this lane
    lanes = inverse_columns(tuple(w >> r for w in plan.across))
    states = [combine(plan.across, c) for c in lanes]
    sent = [w & mask for w in states]
    arrived = [combine(plan.transfer, w) for w in states]
    back = inverse_columns(tuple(a >> r for a in arrived))
    moved = [combine([a & mask for a in arrived], c) for c in back]
    steps: list[Round] = []
    for k in plan.reps:
        to = combine(plan.transfer, k)
        steps.append(Round(k, combine(moved, to >> r) ^ (to & mask), combine(back, to >> r)))
    return Rounds(r, tuple(swaps(sent)), tuple(back), tuple(steps), tuple(swaps(moved)))


def swaps(columns: Sequence[int]) -> Iterator[Swap]:
    """Swaps that add ``columns`` (lane bit -> register bits) times the lane's number to register numbers."""
    basis = _echelon(columns)
    for pivot, vector in basis.items():
        lanes = sum(1 << i for i, c in enumerate(columns) if c >> pivot & 1)
        yield Swap(vector, lanes)


def _echelon(columns: Sequence[int]) -> dict[int, int]:
    """A basis of the span: highest bit -> vector, no vector has another one's highest bit."""
    out: dict[int, int] = {}
    for vector in columns:
        for pivot, b in out.items():
            vector = vector ^ b if vector >> pivot & 1 else vector
        if vector:
            top = vector.bit_length() - 1
            out = {p: b ^ vector if b >> top & 1 else b for p, b in out.items()}
            out[top] = vector
    return out


def applied(steps: Rounds, value: Callable[[int, int], int]) -> dict[tuple[int, int], int]:
    """(lane, register) -> value after the steps; ``value`` gives those before. Checks a plan without a machine."""
    lanes, count = 1 << len(steps.source), 1 << steps.registers

    def turned(by: Sequence[Swap], lane: int) -> int:
        out = 0
        for s in by:
            out ^= s.register if (s.lanes & lane).bit_count() & 1 else 0
        return out

    ready = [[value(lane, n ^ turned(steps.before, lane)) for n in range(count)] for lane in range(lanes)]
    out: dict[tuple[int, int], int] = {}
    for lane in range(lanes):
        flip = turned(steps.after, lane)
        for s in steps.rounds:
            source = combine(steps.source, lane) ^ s.distance
            out[lane, s.received ^ flip] = ready[source][s.sent]
    return out
