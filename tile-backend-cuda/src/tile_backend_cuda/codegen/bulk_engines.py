"""Hopper's engines in the lowering's words: TMA copies, mbarriers, wgmma, and what warps and warpgroups do around them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tile_core.dtypes import DType, dtype
from tile_core.expr import Expr, Var, binary, cast, const
from tile_core.layout.layout import Axis
from tile_core.lowering.simt.boxes import MatrixTask
from tile_core.program import Invoke, Place, Stmt

from ..atoms import SHORT
from ..prelude.warpgroup import name_of
from .matrix_operands import UINT64, descriptor, moved

UINT32 = dtype("uint32")
SUFFIX = {"float32": "f32", "int32": "s32"}  # of narrower types: words
SETTLE = {"tensor": "wgmma_wait<{}>", "store": "bulk_wait_read<{}>"}
COMMIT = {"tensor": "wgmma_commit", "store": "bulk_commit"}
PACK = {"float16": "f16x2_from_f32", "bfloat16": "bf16x2_from_f32"}


class HopperEngines:
    """TMA, wgmma and mbarriers of sm_90a. Each method gives the call of one named helper of the prelude.

    ``stores_boxes``: whether tensors may be written by TMA.
    """

    def __init__(self, stores_boxes: bool = True) -> None:
        self.stores_boxes = stores_boxes

    def prepare(self, tokens: Iterable[tuple[Place, int]]) -> Iterable[Stmt]:
        for token, arrivals in tokens:
            yield Invoke("mbarrier_init", (token, const(arrivals)))
        yield Invoke("fence_mbarrier_init")

    def expect(self, token: Place, bytes: int) -> Stmt:
        return Invoke("mbarrier_arrive_expect_tx", (token, const(bytes)))

    def arrive(self, token: Place) -> Stmt:
        return Invoke("mbarrier_arrive", (token,))

    def arrive_at(self, token: Place, rank: Expr) -> Iterable[Stmt]:
        far = Var("far", UINT32, 1)
        yield Invoke("cluster_map", (token, rank), far)
        yield Invoke("mbarrier_arrive_cluster", (far,))

    def meet(self) -> Stmt:
        return Invoke("cluster_sync")

    def wait(self, token: Place, parity: Expr) -> Stmt:
        return Invoke("mbarrier_wait", (token, parity))

    def load(
        self,
        box: Var,
        start: Sequence[Expr],
        into: Place,
        token: Place,
        blocks: int = 1,
        hint: Var | None = None,
    ) -> Stmt:
        name = f"tma_load_{len(start)}d" + "_multicast" * (blocks > 1) + "_hint" * (hint is not None)
        mask = (const((1 << blocks) - 1),) if blocks > 1 else ()
        policy = () if hint is None else (hint,)
        return Invoke(name, (into, box, token, *reversed(start), *mask, *policy))

    def keep(self, again: bool, result: Var) -> Stmt:
        return Invoke(f"l2_evict_{'last' if again else 'first'}", (), result)

    def store(self, box: Var, start: Sequence[Expr], source: Place) -> Stmt:
        return Invoke(f"tma_store_{len(start)}d", (box, source, *reversed(start)))

    def add(self, box: Var, start: Sequence[Expr], source: Place) -> Stmt:
        return Invoke(f"tma_reduce_add_{len(start)}d", (box, source, *reversed(start)))

    def commit(self, engine: str) -> Stmt:
        return Invoke(COMMIT[engine])

    def settle(self, engine: str, pending: int) -> Stmt:
        return Invoke(SETTLE[engine].format(pending))

    def visible(self) -> Stmt:
        return Invoke("fence_proxy_async_shared")

    def hold(self, registers: Place, count: int, dtype: DType) -> Stmt:
        words, suffix = count * dtype.bits // 32, SUFFIX.get(dtype.name, "b32")
        return Invoke(f"hold_registers_{suffix}<{words}>", (_typed(registers, dtype),))

    def zero(self, registers: Place, count: int, dtype: DType) -> Stmt:
        words, suffix = count * dtype.bits // 32, SUFFIX.get(dtype.name, "b32")
        return Invoke(f"zero_registers_{suffix}<{words}>", (_typed(registers, dtype),))

    def uniform(self, value: Expr, result: Var) -> Stmt:
        return Invoke("uniform", (value,), result)

    def elected(self, result: Var) -> Stmt:
        return Invoke("elect_one", (), result)

    def subgroup_sync(self) -> Stmt:
        return Invoke("warp_sync")

    def somewhere(self, condition: Expr, number: Expr, threads: int, result: Var) -> Stmt:
        return Invoke("named_any", (number, const(threads), condition), result)

    def arrive_only(self, number: Expr, threads: int) -> Stmt:
        return Invoke("named_arrive", (number, const(threads)))

    def registers(self, count: int, more: bool) -> Stmt:
        return Invoke(f"setmaxnreg_{'inc' if more else 'dec'}<{count}>")

    def pack(self, low: Expr, high: Expr, dtype: DType, result: Var) -> Stmt:
        return Invoke(PACK[dtype.name], (low, high), result)

    def store_matrices(self, to: Place, words: Place) -> Stmt:
        return Invoke("stmatrix_x4", (to, words))

    def multiply(self, task: MatrixTask) -> Iterable[Stmt]:
        return _Product(task).statements()


def _typed(registers: Place, dtype: DType) -> Place:
    return Place(registers.buffer, registers.indices, registers.access, "u32" if dtype.bits < 32 else "")


class _Product:
    """The wgmma instructions of one task."""

    def __init__(self, task: MatrixTask) -> None:
        self.task, self.choice = task, task.choice
        atom = task.choice.atom
        if atom is None:
            raise ValueError("multiply-adds are not this engine's")
        self.atom = atom
        self.depth = atom.shape[2]
        wm, wn = task.choice.warps
        m, n, k = task.shape
        self.steps = k // self.depth
        self.rows, self.columns = m // (64 * wm), n // (task.choice.n * wn)
        a, b = task.a, task.b
        self.name = name_of(
            task.choice.n,
            SHORT[atom.types[2]],
            SHORT[atom.types[0]],
            SHORT[atom.types[1]],
            rs=a.held,
            a_transposed=a.flipped and not a.held,
            b_transposed=not b.flipped,
        )

    def statements(self) -> Iterator[Stmt]:
        wm, wn = self.choice.warps
        row = binary("*", binary("%", self.task.group, wm), 64 * self.rows)
        column = binary("*", binary("%", binary("//", self.task.group, wm), wn), self.choice.n * self.columns)
        a, b = self.task.a, self.task.b
        first = Var("a_at", UINT64, self.task.number), Var("b_at", UINT64, self.task.number)
        if not a.held:
            # stored (m, k), or (k, m): rows of the product are then the second index
            start = (column * 0, row) if a.flipped else (row, column * 0)
            yield descriptor("wgmma_descriptor", first[0], a, start, a.flipped)
        start = (column, row * 0) if b.flipped else (row * 0, column)
        yield descriptor("wgmma_descriptor", first[1], b, start, not b.flipped)
        arriving = self.task.arriving
        yield from arriving.get(0, ())
        yield Invoke("wgmma_fence")
        for step in range(self.steps):
            if step and step * self.depth in arriving:
                # a wait is a branch: behind one the compiler looks for a fence of its own (C7519)
                yield from arriving[step * self.depth]
                yield Invoke("wgmma_fence")
            for i in range(self.rows):
                for j in range(self.columns):
                    yield self.one(first, step, i, j)
        yield Invoke("wgmma_commit")

    def one(self, first: tuple[Var, Var], step: int, i: int, j: int) -> Stmt:
        a, b, c = self.task.a, self.task.b, self.task.c
        k = step * self.depth
        register = c.layout.place((i * 64, j * self.choice.n))[Axis.REGISTER]
        if a.held:
            left: Expr | Place = Place(
                a.buffer, (const(a.layout.place((i * 64, k))[Axis.REGISTER]),), "r", "const u32"
            )
        else:
            left = moved(first[0], a, (k, i * 64) if a.flipped else (i * 64, k))
        right = moved(first[1], b, (j * self.choice.n, k) if b.flipped else (k, j * self.choice.n))
        more = const(1) if step else cast(self.task.accumulate, "int32")
        type = "u32" if c.buffer.dtype.bits == 16 else ""
        return Invoke(self.name, (Place(c.buffer, (const(register),), "rw", type), left, right, more))
