"""Blackwell's matrix unit in the lowering's words: tcgen05 products, and the tensor memory that they add up in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tile_core.dtypes import dtype
from tile_core.expr import Expr, Var, binary, cast, const
from tile_core.hardware import Atom
from tile_core.layout.layout import Axis
from tile_core.lowering.simt.boxes import MatrixTask
from tile_core.program import Invoke, Place, Stmt

from ..atoms import SHORT
from .bulk_engines import HopperEngines
from .matrix_operands import UINT64, descriptor, moved

UINT32 = dtype("uint32")
ROWS = 128  # of one instruction of one block

# PTX ISA, tcgen05 instruction descriptor: the kind of an instruction, and the codes of its types
KIND = {
    "f16": "f16",
    "bf16": "f16",
    "tf32": "tf32",
    "e4m3": "f8f6f4",
    "e5m2": "f8f6f4",
    "s8": "i8",
    "u8": "i8",
}
CODE = {"f16": 0, "bf16": 1, "tf32": 2, "e4m3": 0, "e5m2": 1, "u8": 0, "s8": 1}
SUMS = {"f32": 1, "s32": 2}


def instruction_descriptor(atom: Atom, n: int, a_along_m: bool, b_along_n: bool) -> int:
    """The 32 bits that say what a tcgen05.mma multiplies.

    From bit 4 the type of the sums, 7 and 10 those of A and B, 15 and 16 whether they are contiguous along M or N, 17 N / 8,
    24 M / 16.
    """
    a, b, c = (SHORT[t] for t in atom.types)
    types = SUMS[c] << 4 | CODE[a] << 7 | CODE[b] << 10
    return types | a_along_m << 15 | b_along_n << 16 | (n >> 3) << 17 | (ROWS >> 4) << 24


class BlackwellEngines(HopperEngines):
    """TMA and mbarriers as on Hopper; products by tcgen05."""

    def multiply(self, task: MatrixTask) -> Iterable[Stmt]:
        return _Product(task).statements()


class TensorMemory:
    """Tensor memory of sm_100a. Each method gives the call of one named helper of the prelude."""

    widest = 64  # a load of 128 columns leaves no registers for anything else

    def reserve(self, columns: int, to: Place) -> Iterable[Stmt]:
        yield Invoke("tcgen05_alloc", (to, const(columns)))
        yield Invoke("tcgen05_relinquish")

    def where(self, at: Place, result: Var) -> Stmt:
        return Invoke("ld_shared_b32", (at,), result)

    def release(self, base: Expr, columns: int) -> Iterable[Stmt]:
        yield Invoke("tcgen05_dealloc", (base, const(columns)))

    def finish(self, token: Place) -> Stmt:
        return Invoke("tcgen05_commit", (token,))

    def load(self, cells: Expr, registers: Place, count: int) -> Stmt:
        return Invoke(f"tcgen05_ld_32x32b_x{count}", (_words(registers), cells))

    def loaded(self) -> Stmt:
        return Invoke("tcgen05_wait_ld")

    def store(self, cells: Expr, registers: Place, count: int) -> Stmt:
        return Invoke(f"tcgen05_st_32x32b_x{count}", (cells, _words(registers)))

    def stored(self) -> Stmt:
        return Invoke("tcgen05_wait_st")

    def before(self) -> Stmt:
        return Invoke("tcgen05_fence_before")

    def after(self) -> Stmt:
        return Invoke("tcgen05_fence_after")


def _words(registers: Place) -> Place:
    return Place(registers.buffer, registers.indices, registers.access, "u32")


class _Product:
    """The tcgen05 instructions of one group's part of a task."""

    def __init__(self, task: MatrixTask) -> None:
        self.task, atom = task, task.choice.atom
        if atom is None or task.sums is None:
            raise ValueError("multiply-adds, and sums in registers, are not this engine's")
        self.sums = task.sums
        self.depth = atom.shape[2]
        wm, wn = task.choice.warps
        m, n, k = task.shape
        self.steps = k // self.depth
        self.rows, self.columns = m // (ROWS * wm), n // (task.choice.n * wn)
        self.name = f"tcgen05_mma_{KIND[SHORT[atom.types[0]]]}_ss"
        self.instruction = instruction_descriptor(atom, task.choice.n, task.a.flipped, not task.b.flipped)

    def statements(self) -> Iterator[Stmt]:
        wm, wn = self.task.choice.warps
        n = self.task.choice.n
        row = binary("*", binary("%", self.task.group, wm), ROWS * self.rows)
        column = binary("*", binary("%", binary("//", self.task.group, wm), wn), n * self.columns)
        a, b = self.task.a, self.task.b
        first = Var("a_at", UINT64, self.task.number), Var("b_at", UINT64, self.task.number)
        start = (column * 0, row) if a.flipped else (row, column * 0)
        yield descriptor("tcgen05_descriptor", first[0], a, start, a.flipped)
        start = (column, row * 0) if b.flipped else (row * 0, column)
        yield descriptor("tcgen05_descriptor", first[1], b, start, not b.flipped)
        for step in range(self.steps):
            for i in range(self.rows):
                for j in range(self.columns):
                    yield self.one(first, step, i, j)

    def one(self, first: tuple[Var, Var], step: int, i: int, j: int) -> Stmt:
        a, b, c, n = self.task.a, self.task.b, self.task.c, self.task.choice.n
        k = step * self.depth
        at = c.layout.place((i * ROWS, j * n))[Axis.REGISTER]
        left = moved(first[0], a, (k, i * ROWS) if a.flipped else (i * ROWS, k))
        right = moved(first[1], b, (j * n, k) if b.flipped else (k, j * n))
        more = const(1, UINT32) if step else cast(self.task.accumulate, "uint32")
        into = binary("+", self.sums, const(at, UINT32))
        return Invoke(self.name, (into, left, right, const(self.instruction, UINT32), more))
