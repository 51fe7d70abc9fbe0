"""What the lowering of one launch knows: the plan, this thread's number, and names for what it makes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import prod

from ...dtypes import INT32, DType
from ...expr import Buffer, Expr, Space, Var, binary, const, variables
from ...expr.intervals import Interval
from ...expr.simplify import simplify
from ...inference.plan import TilePlan
from ...layout.layout import Axis, Layout
from ...program import Alloc, Launch, Stmt
from .instructions import Instructions


@dataclass
class Context:
    """State of the lowering of one launch. ``made`` are buffers that its ops needed, allocated at the start of the block.

    ``depths``: how many slots shared tiles have that have several.
    """

    plan: TilePlan
    launch: Launch
    thread: Var
    instructions: Instructions = field(default_factory=Instructions)
    ranges: dict[Var, Interval] = field(default_factory=dict[Var, Interval])
    made: list[Buffer] = field(default_factory=list[Buffer])
    numbers: dict[str, int] = field(default_factory=dict[str, int])
    registers: dict[Buffer, Buffer] = field(default_factory=dict[Buffer, Buffer])
    tiles: dict[Buffer, Buffer] = field(default_factory=dict[Buffer, Buffer])
    depths: dict[Buffer, int] = field(default_factory=dict[Buffer, int])
    viewed: frozenset[Buffer] = frozenset()
    slots: dict[Buffer, Expr] = field(
        default_factory=dict[Buffer, Expr]
    )  # where the present slot of a ring begins
    aliases: dict[int, tuple[Stmt, str]] = field(default_factory=dict[int, "tuple[Stmt, str]"])
    # by identity (the expression is kept alive): hashing a tree costs as much as simplifying it
    simplified: dict[int, tuple[Expr, Expr]] = field(default_factory=dict[int, "tuple[Expr, Expr]"])

    @property
    def threads(self) -> int:
        return self.launch.thread_count

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
            found = self.simplified[id(x)] = (x, simplify(x, self.range_of))
        return found[1]

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
        self.plan = replace(self.plan, layouts={**self.plan.layouts, out: layout})
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

    def layout(self, buffer: Buffer) -> Layout:
        """The layout of a fragment or shared tile."""
        return self.plan.layouts[buffer.storage]

    def allocations(self) -> tuple[Stmt, ...]:
        return tuple(Alloc(b, span=b.span) for b in self.made)


def linear_index(index: Sequence[Expr], shape: Sequence[int]) -> Expr:
    """Row-major number of an element."""
    out: Expr = const(0)
    for i, extent in zip(index, shape, strict=True):
        out = binary("+", binary("*", out, extent), i)
    return out


def coordinate(layout: Layout, index: Sequence[Expr], axis: Axis, context: Context) -> Expr:
    """Where an element lies on one axis of a layout, before any swizzle."""
    place = prod(layout.box)
    x = linear_index(index, layout.box)
    out: Expr = const(layout.base(axis))
    top = True  # an element exists in the box, so the most significant digit needs no remainder
    for it in layout.iters:
        place //= it.extent
        if it.axis is axis and it.stride and it.extent > 1:
            digit = binary("//", x, place)
            digit = digit if top else binary("%", digit, it.extent)
            out = binary("+", out, binary("*", digit, it.stride))
        top = top and it.extent == 1
    return context.simple(out)


def depends_on(x: Expr, vars: frozenset[Var]) -> bool:
    return any(v in vars for v in variables(x))
