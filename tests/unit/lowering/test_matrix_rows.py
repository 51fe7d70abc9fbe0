"""Loads of 8x8 matrices bring each thread the elements that the fragment's layout says, for every thread and register."""

from __future__ import annotations

import numpy as np
import pytest

from tile_core.expr import Expr, Var, const
from tile_core.hardware import Target
from tile_core.inference.infer import infer
from tile_core.interpreter.evaluate import Lanes
from tile_core.layout.layout import Axis, Layout
from tile_core.lowering.simt.context import Context
from tile_core.lowering.simt.matrix_rows import Matrices, as_matrices, row_of
from tile_core.lowering.simt.operands import Operand
from tile_core.program import Gemm
from tile_core.program.visit import statements
from tile_core.registry import registry
from tile_core.testing.kernels import gemm

SUBGROUP = 32
TYPES = {
    "half": ("float16", "float32", "float32"),
    "rounded": ("float32", "float32", "float32"),
    "byte": ("int8", "int32", "int32"),
}
SHAPES = [
    ((64, 64, 32), 128),
    ((48, 24, 64), 96),
    ((128, 104, 32), 64),
    ((16, 8, 32), 32),
    ((33, 40, 32), 128),
]


def operands(block: tuple[int, int, int], types: str, threads: int) -> tuple[Context, list[Operand]]:
    """The operands of a gemm on a target with such loads, and the context of its launch."""
    program = gemm(*block, block, TYPES[types], threads=threads).program
    target = Target.parse("cuda:sm_80")
    plan = infer(program, registry().get(target.backend).info(target))
    (launch,) = plan.program.launches
    (s,) = [s for s in statements(plan.program.body) if isinstance(s, Gemm)]
    choice = plan.atoms["gemm0"]
    assert choice.atom is not None and choice.a is not None and choice.b is not None
    depth = choice.atom.shape[2]
    context = Context(plan, launch, Var("thread", const(0).dtype, 900))
    return context, [Operand(s.a, choice.a, False, 1, depth), Operand(s.b, choice.b, False, 0, depth)]


def held(piece: Layout, threads: int) -> dict[tuple[int, int], tuple[int, int]]:
    """(thread, register) -> the element there."""
    out: dict[tuple[int, int], tuple[int, int]] = {}
    for at in np.ndindex(*piece.shape):
        for place in piece.copies(at):
            out[place.get(Axis.THREAD, 0), place.get(Axis.REGISTER, 0)] = at
    assert len(out) == threads * piece.cosize(Axis.REGISTER)
    return out


def received(m: Matrices, rows: np.ndarray, thread: int, q: int, e: int) -> tuple[int, int]:
    """The element that a thread receives of matrix ``q``, given where the threads of its subgroup point."""
    lane, first = thread % SUBGROUP, thread // SUBGROUP * SUBGROUP + 8 * q
    row, step = (lane % 4 * m.per + e, lane // 4) if m.transposed else (lane // 4, lane % 4 * m.per + e)
    begin = rows[:, first + row]
    at = [int(begin[0]), int(begin[1])]
    at[1 - m.row] += step
    return at[0], at[1]


def pointed(context: Context, x: Expr) -> np.ndarray:
    threads = context.threads
    lanes = Lanes(threads, {context.thread: np.arange(threads)}, lambda b: pytest.fail(str(b)))
    return np.broadcast_to(lanes.value(x, np.ones(threads, bool)), threads)


@pytest.mark.parametrize(("block", "threads"), SHAPES, ids=str)
@pytest.mark.parametrize("types", TYPES)
def test_elements(block: tuple[int, int, int], threads: int, types: str) -> None:
    context, found = operands(block, types, threads)
    ways = 0
    for x in found:
        elements = held(x.piece, threads)
        for along in (0, 1):
            m = as_matrices(x.piece, along, x.dtype.bits, SUBGROUP)
            if m is None:
                continue
            ways += 1
            count = next(c for c in (4, 2, 1) if m.count % c == 0)
            for first in range(0, m.count, count):
                rows = np.array([pointed(context, i) for i in row_of(context, m, const(first), count)])
                for thread in range(threads):
                    for q in range(count):
                        for e in range(m.per):
                            want = elements[thread, (first + q) * m.per + e]
                            assert received(m, rows, thread, q, e) == want
    # 16-bit operands are loaded along either dimension, others along k alone
    assert ways == (4 if types == "half" else 2)


def test_what_is_no_matrix() -> None:
    _, (a, _) = operands((64, 64, 32), "half", 128)
    assert as_matrices(a.piece, 1, 64, SUBGROUP) is None
    assert as_matrices(a.piece, 1, 32, SUBGROUP) is None  # a word of it holds one element, not two
    _, (a, b) = operands((64, 64, 32), "byte", 128)
    assert as_matrices(a.piece, 0, 8, SUBGROUP) is None and as_matrices(b.piece, 1, 8, SUBGROUP) is None
