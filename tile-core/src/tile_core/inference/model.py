"""What the engine reads, ops over tiles with digit-wise indices; and what it writes, the solution."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from math import prod

from ..expr import Space
from ..hardware import Atom, TargetInfo
from ..layout.convert import Conversion, Kind
from ..layout.digits import mem
from ..layout.layout import Layout, Shape
from ..layout.panels import row_major
from ..layout.swizzle import Choice
from .maps import Index


@dataclass(frozen=True, slots=True)
class Tile:
    """A tile, or the window of a tensor that one access sees. ``name`` is unique in a problem.

    ``bits`` of one element. ``strides`` in elements, () for row-major. ``align``: elements that everything unknown at
    compile time (where the window begins, symbolic strides, where a bound may cut it) is a multiple of; 0: all is known.
    """

    name: str
    shape: Shape
    bits: int
    space: Space
    strides: tuple[int, ...] = ()
    align: int = 0

    def __str__(self) -> str:
        return self.name

    @property
    def bytes(self) -> int:
        """Size in bytes without padding."""
        return -(-self.bits * prod(self.shape) // 8)

    def memory(self) -> Layout:
        """Its elements in memory before a layout has been chosen."""
        return _strided(self.shape, self.strides) if self.strides else row_major(self.shape)


@lru_cache(maxsize=1024)
def _strided(shape: Shape, strides: tuple[int, ...]) -> Layout:
    return Layout(shape, tuple(mem(n, s) for n, s in zip(shape, strides, strict=True)))


@dataclass(frozen=True, slots=True)
class Access:
    """A read or write of ``tile`` at a digit-wise index of the loops."""

    tile: Tile
    index: tuple[Index, ...]
    write: bool = False

    @property
    def opaque(self) -> bool:
        return any(i.opaque for i in self.index)


@dataclass(frozen=True)
class Elementwise:
    """A loop nest over elements: a ``Parallel`` loop, a copy, a fill. ``work``: instructions per element.

    The last ``serial`` loops run one after the other in each thread. ``bulk``: an unconverted copy of a box, which a
    copy engine could do by itself. ``everywhere``: each thread runs it for itself.
    """

    name: str
    extents: Shape
    accesses: tuple[Access, ...]
    work: int = 1
    serial: int = 0
    bulk: bool = False
    everywhere: bool = False

    @cached_property
    def tiles(self) -> tuple[Tile, ...]:
        return tuple(a.tile for a in self.accesses)

    @cached_property
    def held(self) -> tuple[Access, ...]:
        """Accesses of fragments."""
        return tuple(a for a in self.accesses if a.tile.space is Space.FRAGMENT)

    @cached_property
    def fragments(self) -> tuple[Tile, ...]:
        return tuple(a.tile for a in self.held)


class WholeTiles(ABC):
    """An op that takes its tiles as a whole, not element by element."""

    @property
    @abstractmethod
    def tiles(self) -> tuple[Tile, ...]: ...

    @cached_property
    def fragments(self) -> tuple[Tile, ...]:
        return tuple(t for t in self.tiles if t.space is Space.FRAGMENT)


@dataclass(frozen=True)
class Reduction(WholeTiles):
    """``result = reduce(source)`` along ``dim``. ``kept``: the result has extent 1 there."""

    name: str
    source: Tile
    result: Tile
    dim: int
    kept: bool = False

    @property
    def tiles(self) -> tuple[Tile, ...]:
        return self.source, self.result


@dataclass(frozen=True)
class Prefix(WholeTiles):
    """``result = scan(source)`` along ``dim``; both have one shape."""

    name: str
    source: Tile
    result: Tile
    dim: int

    @property
    def tiles(self) -> tuple[Tile, ...]:
        return self.source, self.result


@dataclass(frozen=True)
class Multiply(WholeTiles):
    """``c[M, N] += a[M, K] b[K, N]``; the flags say that an operand is stored the other way round.

    ``types``: names of the types of a, b and c. ``policy``: how the user wants the warps split. ``exact``: operands must
    not be rounded to a shorter type. ``alone``: nothing else touches c in the loop around. ``placed``: operands in shared
    memory are tiles, or parts of them that begin at known places, so a unit may read them by itself.
    """

    name: str
    a: Tile
    b: Tile
    c: Tile
    a_transposed: bool = False
    b_transposed: bool = False
    types: tuple[str, str, str] = ("float16", "float16", "float32")
    policy: str = "square"
    exact: bool = False
    alone: bool = False
    placed: bool = True

    @property
    def tiles(self) -> tuple[Tile, ...]:
        return self.a, self.b, self.c

    @property
    def shape(self) -> tuple[int, int, int]:
        m, n = self.c.shape
        k = self.a.shape[0] if self.a_transposed else self.a.shape[1]
        return m, n, k


Op = Elementwise | Reduction | Prefix | Multiply


@dataclass(frozen=True, slots=True)
class Home:
    """The shared tile that a gemm operand of ``shape`` lies in. ``view``: the operand is all of it in another shape.

    ``column``: the tile's column with which it begins, as far as that is a number.
    """

    tile: str
    shape: Shape
    view: bool = False
    column: int = 0


@dataclass(frozen=True, slots=True)
class Problem:
    """The ops of one launch in program order. ``repeats``: how often each runs in a block (default once).

    ``pinned``: layouts of tiles that the user gave. ``homes``: gemm operand that is a part or a view of a shared
    tile -> which tile. ``block``: threads of the whole block where other teams do other ops, else 0.
    """

    name: str
    threads: int
    ops: tuple[Op, ...]
    repeats: Mapping[str, int] = field(default_factory=dict[str, int])
    pinned: Mapping[str, Layout] = field(default_factory=dict[str, Layout])
    homes: Mapping[str, Home] = field(default_factory=dict[str, Home])
    block: int = 0

    def tiles(self) -> dict[str, Tile]:
        """All tiles by name."""
        return {t.name: t for op in self.ops for t in op.tiles}


@dataclass(frozen=True, slots=True)
class GemmChoice:
    """How a gemm is done. ``atom`` is None for plain multiply-adds, where each thread owns elements of c.

    ``n``: width of one instruction. ``warps``: groups of ``atom.threads`` threads along M and N. ``a``, ``b``, ``c``:
    layouts over (m, k), (k, n) and (m, n); an operand's is None if it can only come from shared memory.
    """

    atom: Atom | None
    n: int
    warps: tuple[int, int]
    a: Layout | None
    b: Layout | None
    c: Layout

    def __str__(self) -> str:
        if self.atom is None:
            return "multiply-adds"
        return f"{self.atom.name} n{self.n}, {self.warps[0]}x{self.warps[1]} groups of {self.atom.threads}"


@dataclass(frozen=True, slots=True)
class Change:
    """A tile that must change hands: ``op`` disagrees with ``before`` about where its elements are."""

    tile: Tile
    op: str
    before: str
    conversion: Conversion


HOW = {
    Kind.NOTHING: "only the threads that hold an element write it",
    Kind.REGISTERS: "only the threads that hold an element write it",
}


def how(c: Conversion) -> str:
    """What a conversion does, in words."""
    if c.kind is Kind.SHUFFLE:
        return f"{c.shuffles} shuffles and {c.selects} selects"
    return HOW.get(c.kind, f"stage {c.shared_bytes} bytes through shared memory")


@dataclass(frozen=True, slots=True)
class Cost:
    """Estimated clocks of one block on one core: of each unit, and in all. ``registers`` of 32 bits per thread."""

    time: float
    registers: int
    tensor: float = 0
    shared: float = 0
    issue: float = 0
    memory: float = 0

    @property
    def key(self) -> tuple[float, float, int]:
        """The busiest unit decides; then the work of all units; then registers."""
        return self.time, self.tensor + self.shared + self.issue, self.registers


Windows = Mapping[str, Mapping[int, tuple[int, int]]]


@dataclass(frozen=True, slots=True)
class Solution:
    """Layouts by tile, partitions by op, choices by gemm. ``windows``: loop -> (start, count) of a widened slice."""

    problem: Problem
    info: TargetInfo
    fragments: Mapping[str, Layout]
    loops: Mapping[str, Layout]
    gemms: Mapping[str, GemmChoice]
    changes: tuple[Change, ...]
    cost: Cost
    shared: Mapping[str, Choice] = field(default_factory=dict[str, Choice])
    tried: int = 1
    windows: Windows = field(default_factory=dict[str, Mapping[int, "tuple[int, int]"]])
