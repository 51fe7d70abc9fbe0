"""Matrix products: operands are packed where they are not laid out as the inner kernel needs, then multiplied block by block.

The inner kernel keeps a block of c in vector registers over all of k. a is read element by element (any fixed strides),
b in whole vectors along n, c is contiguous along n.
"""

from __future__ import annotations

from dataclasses import dataclass

from .. import _tvm as tvm
from ..dtypes import ALL, DType
from ..errors import KernelError, Unsupported
from ..program import Gemm
from . import numbers
from .copies import swapped
from .nodes import Node, add, i64, known, multiply, run
from .regions import Box
from .scope import Scope
from .staging import Staged, fixed, over, stage

KERNEL_TYPES = ("float32", "float64", "int32", "int64")


@dataclass(frozen=True)
class Vectors:
    """The vector registers of the machine: width in bytes and number."""

    bytes: int
    count: int


@dataclass(frozen=True)
class Operand:
    """Where the kernel reads or writes a matrix: ``address`` of element (i, j), and fixed strides."""

    address: object
    row: int
    column: int

    def at(self, i: Node, j: Node) -> Node:
        return self.address(i, j)  # type: ignore[operator]


@dataclass(frozen=True)
class Blocking:
    """``rows`` of c and ``vectors`` of columns in one call of the kernel; ``lanes`` elements in a vector."""

    rows: int
    vectors: int
    lanes: int

    @property
    def width(self) -> int:
        return self.vectors * self.lanes


def blocking(m: int, n: int, lanes: int, registers: int) -> Blocking:
    """The largest block of c that leaves registers for a row of b and an element of a, in even shares of m."""
    columns = -(-n // lanes)
    vectors = min(columns, 2 if m >= 6 else 4 if m >= 3 else 8 if registers >= 32 else 6)
    most = max(1, (registers - 2 - vectors) // vectors)
    most = min(most, 14)
    return Blocking(-(-m // -(-m // most)), vectors, lanes)


def gemm(scope: Scope, s: Gemm, machine: Vectors) -> list[Node]:
    a, b, c = (Box.of(scope, r) for r in (s.a, s.b, s.c))
    m, n = fixed(c.shape, s.span)
    k = fixed(a.shape, s.span)[0 if s.transpose_a else 1]
    _check(s, a, b, (m, n, k))
    kind = _kernel_type(c.dtype, s)
    if k == 0:
        return over(scope, c.shape, lambda at: c.write(at, numbers.zero(c.dtype))) if s.clear else []
    lanes = machine.bytes // ALL[kind].bytes
    block = blocking(m, n, lanes, machine.count)
    prepare_a, left = _left(scope, s, a, kind)
    prepare_b, right, masked = _right(scope, s, b, kind, (m, n, k), block)
    before, after, target = _target(scope, s, c, kind)
    call = _Calls(kind, block, k, s.clear, masked, left, right, target)
    return [*prepare_a, *prepare_b, *before, *call.all(scope, m, n), *after]


def _check(s: Gemm, a: Box, b: Box, mnk: tuple[int, int, int]) -> None:
    m, n, k = mnk
    wanted = ((k, m) if s.transpose_a else (m, k), (n, k) if s.transpose_b else (k, n))
    for name, box, shape in zip("ab", (a, b), wanted, strict=True):
        found = fixed(box.shape, s.span)
        if found != shape:
            raise KernelError(
                f"gemm: {name} ({box.buffer.name}) has shape {found}, {shape} is needed",
                s.span,
                why=f"c is {m} x {n} and the products run over k = {k}",
            )


def _kernel_type(t: DType, s: Gemm) -> str:
    """The type that products are summed in: that of c; narrow floats are summed in float32 and rounded once."""
    kind = numbers.held(t)
    if kind in KERNEL_TYPES:
        return kind
    if t.is_integer:
        return "int64" if t.bits == 64 else "int32"
    raise Unsupported(f"gemm into {t} is not supported on this target", s.span)


def _direct(box: Box, kind: str) -> bool:
    """Whether the kernel may read the box where it lies."""
    if numbers.storage(box.dtype) != kind or numbers.held(box.dtype) != kind or not box.inside:
        return False
    return all(known(x) is not None for x in box.strides())


def _in_place(scope: Scope, box: Box, flip: bool) -> Operand:
    strides = [known(x) or 0 for x in box.strides()]
    row, column = reversed(strides) if flip else strides
    return Operand(lambda i, j: scope.address(box.buffer, box.place([j, i] if flip else [i, j])), row, column)


def _as_kind(box: Box, at: list[Node], kind: str) -> Node:
    """An element in the type of the sum. Wrapping of narrower integers is that of the sum's own type."""
    t = ALL[kind]
    return numbers.cast(box.read(at), box.dtype, t)


def _left(scope: Scope, s: Gemm, a: Box, kind: str) -> tuple[list[Node], Operand]:
    if _direct(a, kind):
        return [], _in_place(scope, a, s.transpose_a)
    hold = stage(scope, "left", a.shape, kind, s.span)
    fill = over(scope, a.shape, lambda at: [hold.store(at, _as_kind(a, at, kind))])
    return fill, _staged(hold, s.transpose_a)


def _staged(hold: Staged, flip: bool) -> Operand:
    row, column = (1, hold.pitch) if flip else (hold.pitch, 1)
    return Operand(lambda i, j: hold.address([j, i] if flip else [i, j]), row, column)


def _right(
    scope: Scope, s: Gemm, b: Box, kind: str, mnk: tuple[int, int, int], block: Blocking
) -> tuple[list[Node], Operand, bool]:
    """B packed, so that each panel of columns is contiguous; as it lies if that is enough."""
    m, n, k = mnk
    few_rows = block.rows == m  # each element of b is used once: packing would only cost
    if few_rows and not s.transpose_b and _direct(b, kind) and known(b.strides()[1]) == 1:
        return [], _in_place(scope, b, False), n % block.lanes != 0
    panels = -(-n // block.width)
    hold = stage(scope, "right", [i64(panels), i64(k), i64(block.width)], kind, s.span)

    def address(i: Node, j: Node) -> Node:
        """Only asked for the first column of a panel."""
        return hold.address([tvm.Div(j, i64(block.width)), i, i64(0)])

    fill = _pack(scope, b, hold, kind, (n, k), block, s.transpose_b)
    return fill, Operand(address, block.width, 1), False


def _pack(
    scope: Scope, b: Box, hold: Staged, kind: str, nk: tuple[int, int], block: Blocking, flip: bool
) -> list[Node]:
    """Panels of columns; ``flip``: b is given as (n, k)."""
    n, k = nk

    def panel(count: int, number: Node, base: Node) -> list[Node]:
        def move(at: list[Node]) -> list[Node]:
            row, column = swapped(at) if flip else at
            place = [add(base, column), row] if flip else [row, add(base, column)]
            return [hold.store([number, row, column], _as_kind(b, place, kind))]

        return over(scope, [i64(count), i64(k)] if flip else [i64(k), i64(count)], move, "c")

    width = block.width
    whole, rest = divmod(n, width)
    out: list[Node] = []
    if whole:
        out += over(scope, [i64(whole)], lambda p: panel(width, p[0], multiply(p[0], i64(width))), "p")
    return out + panel(rest, i64(whole), i64(whole * width)) if rest else out


def _target(scope: Scope, s: Gemm, c: Box, kind: str) -> tuple[list[Node], list[Node], Operand]:
    """C as it lies if the kernel can write it there; else a copy of it, before and after."""
    if _direct(c, kind) and known(c.strides()[1]) == 1:
        return [], [], _in_place(scope, c, False)
    hold = stage(scope, "sums", c.shape, kind, s.span)
    before = [] if s.clear else over(scope, c.shape, lambda at: [hold.store(at, _as_kind(c, at, kind))])
    t = ALL[kind]
    after = over(scope, c.shape, lambda at: c.write(at, numbers.cast(hold.load(at), t, c.dtype)))
    return before, after, _staged(hold, False)


@dataclass(frozen=True)
class _Calls:
    """Calls of the inner kernel that together cover c."""

    kind: str
    block: Blocking
    k: int
    clear: bool
    masked: bool
    left: Operand
    right: Operand
    target: Operand

    def all(self, scope: Scope, m: int, n: int) -> list[Node]:
        """Columns outermost, so that a panel of b stays in the cache while all rows of a pass."""
        width = self.block.width
        whole, rest = divmod(n, width)
        out: list[Node] = []
        if whole:
            out += over(
                scope,
                [i64(whole)],
                lambda p: self._rows(
                    scope, m, multiply(p[0], i64(width)), self.block.vectors, self.block.lanes
                ),
                "panel",
            )
        if rest:
            vectors = -(-rest // self.block.lanes)
            tail = rest - (vectors - 1) * self.block.lanes
            out += self._rows(scope, m, i64(whole * width), vectors, tail)
        return out

    def _rows(self, scope: Scope, m: int, column: Node, vectors: int, tail: int) -> list[Node]:
        """Blocks of ``rows`` and of one row less, so that no small block is left over."""
        most = self.block.rows
        count = -(-m // most)
        shorter = count * most - m
        taller = count - shorter
        if taller < 0:  # shares of m differ by more than one: whole blocks, then what is left
            taller, shorter = m // most, 0
        out = self._calls(scope, taller, most, 0, column, vectors, tail)
        out += self._calls(scope, shorter, most - 1, taller * most, column, vectors, tail)
        done = taller * most + shorter * (most - 1)
        return out if done == m else out + self._calls(scope, 1, m - done, done, column, vectors, tail)

    def _calls(
        self, scope: Scope, count: int, rows: int, first: int, column: Node, vectors: int, tail: int
    ) -> list[Node]:
        if count == 0 or rows == 0:
            return []
        name = self._name(rows, vectors, tail)

        def call(p: list[Node]) -> list[Node]:
            row = add(multiply(p[0], i64(rows)), i64(first))
            zero = i64(0)
            return [
                run(name, self.left.at(row, zero), self.right.at(zero, column), self.target.at(row, column))
            ]

        return over(scope, [i64(count)], call, "block")

    def _name(self, rows: int, vectors: int, tail: int) -> str:
        """The kernel's name holds its constants: see ``Kernel`` of the target's prelude."""
        strides = (self.left.row, self.left.column, self.right.row, self.target.row)
        flags = (tail, int(self.clear), int(self.masked and tail < self.block.lanes))
        numbers = (rows, vectors, self.block.lanes, self.k, *strides, *flags)
        return ".".join(("tile.mma", self.kind, *map(str, numbers)))
