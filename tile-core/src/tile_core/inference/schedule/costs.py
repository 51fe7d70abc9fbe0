"""Clocks of one core that an op takes: from its statement and the facts of the target. Rates are the vendor's, not measured.

Of a target that leaves a rate open, the usual one of its kind is assumed: the constants here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, prod

from ...expr import Binary, Buffer, Call, Cast, Const, Expr, Select, Space, Unary, Var, loads, variables, walk
from ...hardware import Engine, TargetInfo
from ...program import Copy, Fill, For, Gemm, If, Parallel, Reduce, Region, Scan, Stmt
from ...program.visit import bodies, expressions, read_buffers, written_buffers
from ..model import GemmChoice

LANES = 128  # multiply-adds a core does in a clock without its matrix unit
FEWER = 8  # how many times fewer exponentials than multiply-adds
BANKS = 128  # bytes that shared memory moves in a clock
ARRIVAL = 600  # clocks until a load from global memory arrives
MISSES = (
    0.25  # share of the bytes that the cache behind the copies does not hold: tiles are read by many blocks
)
VECTOR = 16  # bytes that a thread copies with one instruction
SELDOM = 1 / 8  # how often a branch without another side is taken: it is for tiles at an edge
START = 20  # clocks before the first result of a sequence of elementwise instructions
CROSS = 60  # clocks to combine the parts of a result that several threads hold
SPECIAL = (
    "exp exp2 exp10 log log2 log10 sqrt rsqrt sin cos tan tanh sigmoid erf pow "
    "__exp __exp2 __exp10 __log __log2 __log10 __sin __cos __tan __rcp"
)
SLOW = frozenset(SPECIAL.split())
GUESS = 16  # elements along an extent that is known only when the kernel runs


@dataclass(frozen=True, slots=True)
class Cost:
    """``busy`` on its unit or in its stream, ``latency`` from start to completion, ``issue`` of an asynchronous op."""

    busy: int
    latency: int
    issue: int = 0
    fluid: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Rates:
    """What one core of the target does in a clock: multiply-adds, special functions, bytes of each memory."""

    info: TargetInfo
    lanes: float
    special: float
    shared: float
    memory: float

    @staticmethod
    def of(info: TargetInfo) -> Rates:
        return _rates(info)

    def synchronous(self, s: Stmt, choice: GemmChoice | None = None) -> Cost:
        """An op that holds its stream until it is done."""
        clocks = ceil(self._clocks(s, choice))
        return Cost(clocks, clocks, 0, self._traffic(s, choice))

    def copy(self, s: Copy, engine: Engine) -> Cost:
        """A copy by an engine of its own."""
        size = _bytes(s.dst)
        busy = ceil(size / (engine.rate or self.memory))
        issue = max(1, engine.issue)
        if engine.observed == "group":  # all threads issue it, piece by piece
            issue = max(issue, size // (VECTOR * self.info.subgroup))
        return Cost(busy, busy + (engine.latency or ARRIVAL), issue, self._traffic(s, None))

    def stage(self, tile: Region) -> Cost:
        """Threads write a tile to shared memory, from where an engine takes it."""
        moved = _bytes(tile) / self.shared
        clocks = ceil(START + CROSS + moved)
        return Cost(clocks, clocks, 0, (("shared", ceil(2 * moved)),))

    def multiply(self, s: Gemm, choice: GemmChoice, engine: Engine) -> Cost:
        """A gemm that the matrix unit does by itself."""
        busy = ceil(self._multiply(s, choice))
        return Cost(busy, busy + engine.latency, max(1, engine.issue), self._traffic(s, choice))

    def _clocks(self, s: Stmt, choice: GemmChoice | None) -> float:
        match s:
            case Gemm():
                return self._multiply(s, choice) + START
            case Copy() | Fill():
                return self._move(s)
            case Reduce() | Scan():
                return _count(s.src) / self.lanes + CROSS + self._loads(s, _count(s.src))
            case If() if not s.other:
                return START + SELDOM * sum(self._elements(x, 1) for x in s.then)
            case Parallel() | For():
                return START + self._elements(s, 1)
            case _:
                return START + CROSS + sum(self._elements(x, 1) for b in bodies(s) for x in b)

    def _multiply(self, s: Gemm, choice: GemmChoice | None) -> float:
        work = 2 * prod(_known(n) for n in s.mnk)
        atom = choice.atom if choice else None
        return work / (atom.rate if atom else 2 * self.lanes)

    def _move(self, s: Copy | Fill) -> float:
        count = _count(s.dst)
        spaces = {s.dst.buffer.space} | ({s.src.buffer.space} if isinstance(s, Copy) else set[Space]())
        clocks = count / self.lanes / 2 + START
        if Space.SHARED in spaces:
            clocks += count * s.dst.dtype.bits / 8 / self.shared + CROSS
        if Space.GLOBAL in spaces:
            clocks += count * s.dst.dtype.bits / 8 * MISSES / self.memory
            clocks += ARRIVAL if s.dst.buffer.space is not Space.GLOBAL else 0
        return clocks

    def _elements(self, s: Stmt, times: int, counters: frozenset[Var] = frozenset()) -> float:
        """Clocks of a nest of loops over elements, in loops with ``counters``."""
        plain = special = 0
        for x in expressions(s):
            for e in walk(x):
                plain += isinstance(e, Binary | Unary | Select | Cast | Call)
                special += isinstance(e, Call) and e.function in SLOW
        each = max(plain / self.lanes, special / self.special)
        inner, within = times * _trips(s), counters | _counters(s)
        here = 0.0 if bodies(s) else times * (each + self._loads(s, 1, _same_everywhere(s, counters)))
        return here + sum(self._elements(x, inner, within) for b in bodies(s) for x in b)

    def _loads(self, s: Stmt, count: int, once: Collection[Buffer] = ()) -> float:
        """Clocks of what a statement reads and writes in memory, for ``count`` elements. Reads of ``once`` are none of them."""
        found = (*(b for b in read_buffers(s) if b not in once), *written_buffers(s))
        speed: Mapping[Space, float] = {Space.SHARED: self.shared, Space.GLOBAL: self.memory}
        return sum(count * b.dtype.bits / 8 / speed[b.space] for b in found if b.space in speed)

    def _traffic(self, s: Stmt, choice: GemmChoice | None) -> tuple[tuple[str, int], ...]:
        """Clocks on the bandwidths that many ops share."""
        shared = memory = 0.0
        match s:
            case Gemm() if choice is not None and choice.atom is not None:
                rows = choice.c.box[0] / choice.atom.shape[0] if choice.atom.shared_a else choice.warps[0]
                columns = 1 if choice.atom.shared_a else choice.warps[1]
                shared += _bytes(s.a) * columns if s.a.buffer.space is Space.SHARED else 0
                shared += _bytes(s.b) * rows if s.b.buffer.space is Space.SHARED else 0
            case Copy():
                for r in (s.src, s.dst):
                    shared += _bytes(r) if r.buffer.space is Space.SHARED else 0
                    memory += _bytes(s.dst) * MISSES if r.buffer.space is Space.GLOBAL else 0
            case _:
                pass
        found = {"shared": shared / self.shared, "global": memory / self.memory}
        return tuple((name, int(clocks)) for name, clocks in found.items() if clocks >= 1)


@lru_cache(maxsize=64)
def _rates(info: TargetInfo) -> Rates:
    engines = {e.name: e for e in info.engines}

    def rate(name: str) -> float:
        return engines[name].rate if name in engines else 0.0

    per_core = info.cores * info.clock
    lanes = info.peaks.get("float32", 2 * LANES * per_core) / 2 / per_core
    memory = info.peaks.get("global", BANKS * per_core) / per_core
    return Rates(info, lanes, rate("sfu") or lanes / FEWER, rate("shared") or BANKS, rate("global") or memory)


def _known(extent: int | Expr) -> int:
    if isinstance(extent, int):
        return extent
    return int(extent.value) if isinstance(extent, Const) else GUESS


def _count(r: Region) -> int:
    return prod(_known(n) for n in r.extent)


def _bytes(r: Region) -> int:
    return ceil(_count(r) * r.dtype.bits / 8)


def _counters(s: Stmt) -> frozenset[Var]:
    match s:
        case Parallel():
            return frozenset(s.vars)
        case For():
            return frozenset(() if s.var is None else (s.var,))
        case _:
            return frozenset()


def _same_everywhere(s: Stmt, counters: frozenset[Var]) -> set[Buffer]:
    """Buffers of which all elements of a nest read the same ones: they are read once, in front of it."""
    found = [(x.buffer, counters.isdisjoint(variables(x))) for e in expressions(s) for x in loads(e)]
    return {b for b, same in found if same} - {b for b, same in found if not same}


def _trips(s: Stmt) -> int:
    match s:
        case Parallel():
            return prod(_known(n) for n in s.extents)
        case For():
            return _known(s.extent)
        case _:
            return 1


def size(buffer: Buffer) -> int:
    """Bytes of a tile without padding."""
    return ceil(prod(_known(n) for n in buffer.shape) * buffer.dtype.bits / 8)
