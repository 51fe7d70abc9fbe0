"""What the lowering of one launch knows: the plan, this thread's number, and names for what it makes."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import gcd, prod
from typing import TYPE_CHECKING

from ...dtypes import INT32, INT64, DType
from ...expr import Binary, Buffer, Cast, Const, Expr, Space, Var, binary, const, variables
from ...expr.affine import NOTHING, Linear
from ...expr.intervals import Interval
from ...expr.simplify import formed, quotient, remainder, simplify, summed
from ...inference.plan import TilePlan
from ...inference.teams import OWN
from ...layout.layout import Axis, Layout, grouped
from ...program import Alloc, Launch, Stmt, Sync
from ...verification.comparisons import Known
from .instructions import Instructions

if TYPE_CHECKING:
    from .settling import Crossing

# bytes: the widest access of a thread, a row of all banks, the longest period of a swizzle that matrix units know
VECTOR, BANKS, SWIZZLE = 16, 128, 1024
ZERO, WIDE = const(0), const(0, INT64)
OWN_BARRIER = 1  # of the user's threads; 0 is the whole block's


@dataclass(frozen=True, slots=True)
class Team:
    """Threads of a block that do the same statements together: ``thread`` counts them, ``barrier`` is the number of theirs.

    ``stream``: their name in schedules.
    """

    stream: str
    thread: Var
    threads: int
    barrier: int


@dataclass
class Context:
    """State of the lowering of one launch. ``made`` are buffers that its ops needed, allocated at the start of the block.

    ``depths``: how many slots shared tiles have that have several. ``crossings``: of accumulators that are matrices for a while.
    ``apart``: reductions whose threads keep what each of them has. ``thread`` is that of the team whose
    statements are lowered.
    """

    plan: TilePlan
    launch: Launch
    thread: Var
    instructions: Instructions = field(default_factory=Instructions)
    ranges: dict[Var, Interval] = field(default_factory=dict[Var, Interval])
    made: list[Buffer] = field(default_factory=list[Buffer])
    numbers: dict[str, int] = field(default_factory=dict[str, int])
    registers: dict[Buffer, Buffer] = field(default_factory=dict[Buffer, Buffer])
    layouts: dict[Buffer, Layout] = field(default_factory=dict[Buffer, Layout])
    tiles: dict[Buffer, Buffer] = field(default_factory=dict[Buffer, Buffer])
    depths: dict[Buffer, int] = field(default_factory=dict[Buffer, int])
    digits: dict[tuple[str, int, int, int], Expr] = field(
        default_factory=dict[tuple[str, int, int, int], Expr]
    )
    known: Known = field(default_factory=Known)
    crossings: dict[Buffer, Crossing] = field(default_factory=dict[Buffer, "Crossing"])
    viewed: frozenset[Buffer] = frozenset()
    apart: set[str] = field(default_factory=set[str])
    slots: dict[Buffer, Expr] = field(
        default_factory=dict[Buffer, Expr]
    )  # where the present slot of a ring begins
    aliases: dict[int, tuple[Stmt, str]] = field(default_factory=dict[int, "tuple[Stmt, str]"])
    # by identity (the expression is kept alive): hashing a tree costs as much as simplifying it
    simplified: dict[int, tuple[Expr, Expr]] = field(default_factory=dict[int, "tuple[Expr, Expr]"])
    forms: dict[int, tuple[Expr, Linear]] = field(default_factory=dict[int, "tuple[Expr, Linear]"])

    def __post_init__(self) -> None:
        self.team = Team(OWN, self.thread, self.launch.thread_count, OWN_BARRIER)
        self.layouts.update(self.plan.layouts)

    @property
    def threads(self) -> int:
        return self.team.threads

    @contextmanager
    def working_as(self, team: Team) -> Generator[None, None, None]:
        """What is lowered inside is for another team."""
        before = self.team
        self.team, self.thread = team, team.thread
        try:
            yield
        finally:
            self.team, self.thread = before, before.thread

    def meet(self) -> Sync:
        """All threads of the team."""
        return Sync(self.team.barrier, self.team.threads)

    def name_of(self, s: Stmt) -> str:
        """The name of a statement's node in the graph, "" if it has none."""
        found = self.aliases.get(id(s))
        return found[1] if found else self.plan.graph.names.get(id(s), "")

    def var(self, name: str, extent: int) -> Var:
        """A fresh variable that counts up to ``extent``."""
        out = Var(name, INT32, self.unique(name))
        self.ranges[out] = Interval(0, extent - 1)
        return out

    def range_of(self, v: Var) -> Interval:
        return self.ranges.get(v, Interval())

    def unique(self, name: str) -> int:
        # numbers of the user's names are small; those made here start above them
        self.numbers[name] = self.numbers.get(name, 1000) + 1
        return self.numbers[name]

    def simple(self, x: Expr) -> Expr:
        """``x`` simplified by the ranges of all variables that count something."""
        found = self.simplified.get(id(x))
        if found is None:
            simpler = simplify(x, self.range_of)
            found = self.simplified[id(x)] = (x, simpler)
            self.simplified[id(simpler)] = (simpler, simpler)
        return found[1]

    def form(self, x: Expr) -> Linear:
        """An index as a sum, by the same ranges."""
        found = self.forms.get(id(x))
        if found is None:
            found = self.forms[id(x)] = (x, formed(x, self.range_of))
        return found[1]

    def sum(self, form: Linear) -> Expr:
        """A sum as an index."""
        wide = any(t.dtype.bits > ZERO.dtype.bits for t in form.terms)
        out = summed(form, WIDE if wide else ZERO)
        self.simplified[id(out)] = (out, out)
        self.forms[id(out)] = (out, form)
        return out

    def divisor(self, form: Linear | int) -> int:
        """The largest number known to divide a sum; 0 for zero."""
        if isinstance(form, int):
            return abs(form)
        return gcd(form.constant, *(n * divisor_of(t, self.known.divisors) for t, n in form.terms.items()))

    def scratch(self, name: str, count: int, dtype: DType) -> Buffer:
        """A fresh flat tile in shared memory."""
        out = Buffer(name, (count,), dtype, Space.SHARED, number=self.unique(name))
        self.made.append(out)
        return out

    def private(self, name: str, count: int, dtype: DType) -> Buffer:
        """A fresh private array of each thread."""
        out = Buffer(name, (max(1, count),), dtype, Space.LOCAL, number=self.unique(name))
        self.made.append(out)
        return out

    def placed_tile(
        self, name: str, shape: tuple[int, ...], dtype: DType, space: Space, layout: Layout
    ) -> Buffer:
        """A fresh fragment or shared tile that lies as ``layout`` says."""
        out = Buffer(name, shape, dtype, space, number=self.unique(name))
        self.layouts[out] = layout
        return out

    def register_file(self, fragment: Buffer) -> Buffer:
        """The private array that holds this thread's part of a fragment."""
        found = self.registers.get(fragment)
        if found is None:
            count = self.layout(fragment).cosize(Axis.REGISTER)
            found = Buffer(
                fragment.name,
                (count,),
                fragment.dtype,
                Space.LOCAL,
                number=fragment.number,
                span=fragment.span,
            )
            self.registers[fragment] = found
        return found

    def fragment(self, name: str, layout: Layout, dtype: DType) -> Buffer:
        """A fresh fragment."""
        out = Buffer(name, layout.shape, dtype, Space.FRAGMENT, number=self.unique(name))
        self.layouts[out] = layout
        return out

    def layout(self, buffer: Buffer) -> Layout:
        """The layout of a fragment or shared tile. Raises ``KeyError`` if it has none."""
        return self.layouts[buffer.storage]

    def alignments(self) -> dict[Buffer, int]:
        """Every tile in shared memory, with the bytes that its place must be a multiple of."""
        out = dict.fromkeys((b for b in self.made if b.space is Space.SHARED), VECTOR)
        for storage, flat in self.tiles.items():
            layout = self.layouts.get(storage)
            period = 1 if layout is None else layout.swizzle.window * storage.dtype.bytes
            out[flat] = max(BANKS, min(period, SWIZZLE))
        return out

    def allocations(self, offsets: Mapping[Buffer, int]) -> tuple[Stmt, ...]:
        """Everything that exists from the start of the block. ``offsets``: of tiles in shared memory."""
        found = (*self.made, *self.tiles.values(), *self.registers.values())
        return tuple(Alloc(b, offsets.get(b), span=b.span) for b in found)


def linear_index(index: Sequence[Expr], shape: Sequence[int]) -> Expr:
    """Row-major number of an element."""
    out: Expr = const(0)
    for i, extent in zip(index, shape, strict=True):
        out = binary("+", binary("*", out, extent), i)
    return out


def linear_form(context: Context, index: Sequence[Expr], shape: Sequence[int]) -> Linear:
    """The same as a sum."""
    out = NOTHING
    for i, extent in zip(index, shape, strict=True):
        out = out.times(extent).plus(context.form(i))
    return out


def coordinate(layout: Layout, index: Sequence[Expr], axis: Axis, context: Context) -> Expr:
    """Where an element lies on one axis of a layout, before any swizzle."""
    return context.sum(coordinate_form(layout, index, axis, context))


def coordinate_form(layout: Layout, index: Sequence[Expr], axis: Axis, context: Context) -> Linear:
    """The same as a sum. An element exists, so the most significant digit of each dimension needs no remainder."""
    out = Linear(layout.base(axis))
    groups = grouped(layout)
    parts = (
        [(linear_form(context, index, layout.box), layout.iters)]
        if groups is None
        else [(context.form(i), group) for i, group in zip(index, groups, strict=True)]
    )
    for x, digits in parts:
        place = prod(it.extent for it in digits)
        top = True
        for it in digits:
            place //= it.extent
            if it.axis is axis and it.stride and it.extent > 1:
                digit = quotient(x, place, context.range_of, ZERO)
                digit = digit if top else remainder(digit, it.extent, context.range_of, ZERO)
                out = out.plus(digit, it.stride)
            top = top and it.extent == 1
    return out


def divisor_of(x: Expr, facts: Mapping[Var, int]) -> int:
    """A number that divides ``x``. ``facts``: of variables."""
    match x:
        case Const():
            return abs(int(x.value))
        case Var():
            return facts.get(x, 1)
        case Cast() if x.value.dtype.is_integer and x.dtype.holds(x.value.dtype):
            return divisor_of(x.value, facts)
        case Binary(op="*"):
            return divisor_of(x.a, facts) * divisor_of(x.b, facts)
        case Binary(op="+" | "-"):
            return gcd(divisor_of(x.a, facts), divisor_of(x.b, facts))
        case _:
            return 1


def depends_on(x: Expr, vars: frozenset[Var]) -> bool:
    return any(v in vars for v in variables(x))
