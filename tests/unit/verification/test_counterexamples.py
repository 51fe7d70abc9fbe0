"""Every kind of obligation that fails is shown in the user's terms: his line, the blocks, the iterations, what meets what."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tile_core.language as T
from tile_core.errors import KernelError
from tile_core.inference.plan import TilePlan
from tile_core.inference.schedule.program import Schedule, Step
from tile_core.runtime import compile
from tile_core.runtime.pipeline import emitted
from tile_core.verification.heard import Meaning
from tile_core.verification.plans import FAILED, OPEN, PROVED, Row, verified

M, N, K = 256, 256, 512


@T.prim_func
def gemm(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float16")):
    with T.Kernel(N // 128, M // 128, threads=128) as (bx, by):
        left = T.alloc_shared((128, 64), "float16")
        right = T.alloc_shared((64, 128), "float16")
        acc = T.alloc_fragment((128, 128), "float32")
        T.clear(acc)
        for k in T.Pipelined(K // 64, num_stages=2):
            T.copy(A[by * 128, k * 64], left)
            T.copy(B[k * 64, bx * 128], right)
            T.gemm(left, right, acc)
        T.copy(acc, C[by * 128, bx * 128])


def plan(kernel: Any = gemm) -> TilePlan:
    return compile(kernel, target="cuda:sm_90a").plan


def failed(p: TilePlan, what: str, status: str = FAILED) -> Row:
    (row,) = (r for r in verified(p) if r.status == status and r.what == what)
    return row


def broken(change: Callable[[Schedule], Schedule]) -> TilePlan:
    p = plan()
    ((name, s),) = p.schedules.items()
    return replace(p, schedules={name: change(s)})


def without(token: str) -> Callable[[Schedule], Schedule]:
    """A schedule whose ops do not wait for a token."""

    def change(s: Schedule) -> Schedule:
        def kept(x: Step) -> Step:
            return replace(x, waits=tuple(w for w in x.waits if w.token != token))

        return replace(s, streams={name: tuple(map(kept, steps)) for name, steps in s.streams.items()})

    return change


def shallow(s: Schedule) -> Schedule:
    return replace(s, tokens={name: replace(t, slots=1) for name, t in s.tokens.items()})


def in_a_circle(s: Schedule) -> Schedule:
    """The copies wait for the product of their own iteration."""
    first, *rest = s.streams["copy"]
    late = tuple(replace(w, distance=0) for w in first.waits)
    return replace(s, streams={**s.streams, "copy": (replace(first, waits=late), *rest)})


@pytest.mark.parametrize(
    ("change", "text", "marked", "why"),
    [
        (
            without("copy0+copy1->main"),
            "gemm0 of iteration 0 may read left before copy0 of iteration 0 has written it",
            ("T.gemm(left, right, acc)", "T.copy(A[by * 128, k * 64], left)"),
            "in a loop of 1 iteration",
        ),
        (
            without("main.tensor:gemm0"),
            "copy0 of iteration 2 may write left before gemm0 of iteration 0 has read it",
            ("T.copy(A[by * 128, k * 64], left)", "T.gemm(left, right, acc)"),
            "in a loop of 3 iterations",
        ),
        (
            without("gemm0.done->copy"),
            "copy0 of iteration 2 may write left before copy0 of iteration 0 has written it",
            ("T.copy(A[by * 128, k * 64], left)",),
            "in a loop of 3 iterations",
        ),
        (
            shallow,
            "copy0 of iteration 1 may arrive at a slot of token copy0+copy1->main that gemm0 of iteration 0 has not waited for yet",
            ("T.copy(A[by * 128, k * 64], left)", "T.gemm(left, right, acc)"),
            "in a loop of 2 iterations",
        ),
        (in_a_circle, "wait for each other", (), "in a loop of"),
    ],
)
def test_an_op_overtakes(
    change: Callable[[Schedule], Schedule], text: str, marked: tuple[str, ...], why: str
) -> None:
    example = failed(broken(change), "order kept, nobody stuck").example
    assert text in example.splitlines()[0]
    assert f"= why:  {why}" in example
    for line in marked:
        assert shown(line) in example


def shown(text: str) -> str:
    """A line of this file with its number and a caret under each column of the text."""
    with open(__file__, encoding="utf8") as f:
        number, line = next((n, line.rstrip()) for n, line in enumerate(f, 1) if line.strip() == text)
    return f"{number} | {line}\n{' ' * len(str(number))} | {' ' * line.index(text)}{'^' * len(text)}"


def test_an_index_leaves() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((M,), "float32"), B: T.Tensor((M,), "float32")):
        with T.Kernel(4, threads=64) as bx:
            for i in T.Parallel(64):
                B[bx * 64 + i] = A[bx * 64 + i + 256]

    row = failed(plan(kernel), "accesses in bounds")
    assert "dimension 0 of A is left" in row.example
    assert "with bx = 0, i = 0 it is 256 of 256" in row.example
    assert "B[bx * 64 + i] = A[bx * 64 + i + 256]" in row.example and "^" in row.example


def test_sizes_for_which_an_index_leaves() -> None:
    n = T.dynamic("n")

    @T.prim_func
    def kernel(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, 64), threads=64) as bx:
            for i in T.Parallel(64):
                if bx * 64 + i < n:
                    B[bx * 64 + i] = A[-1 - i]

    example = failed(plan(kernel), "accesses in bounds").example
    assert "it is -1 of 1" in example and "n = 1" in example and "i = 0" in example


def test_two_blocks_write_one_element() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((M, N), "float32"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(16, threads=128) as b:
            tile = T.alloc_fragment((32, N), "float32")
            T.copy(A[b * 16, 0], tile)
            T.copy(tile, C[b * 16, 0])

    row = failed(plan(kernel), "written once")
    found = re.match(r"error: block b = (\d+) and block b = (\d+) write C\[(\d+), (\d+)\]\n", row.example)
    assert found is not None
    first, second, line, _ = map(int, found.groups())
    assert first != second and all(16 * b <= line < 16 * b + 32 for b in (first, second))
    assert shown("T.copy(tile, C[b * 16, 0])") in row.example


def by_order(distinct: bool) -> Any:
    @T.prim_func
    def kernel(
        A: T.Tensor((16, N), "float32"),
        order: T.Tensor((16,), "int32", distinct=distinct),
        C: T.Tensor((16, N), "float32"),
    ):
        with T.Kernel(16, threads=128) as b:
            tile = T.alloc_fragment((1, N), "float32")
            T.copy(A[order[b], 0], tile)
            T.copy(tile, C[order[b], 0])

    return kernel


def test_an_order_is_taken_for_one_only_if_it_is_declared() -> None:
    row = failed(plan(by_order(False)), "written once", OPEN)
    assert re.search(r"would write C\[\d+, \d+\], if order\[\d+\] = \d+ and order\[\d+\] = \d+", row.example)
    assert "distinct=True" in row.example
    (row,) = (r for r in verified(plan(by_order(True))) if r.what == "written once")
    assert (row.status, row.example) == (PROVED, "")
    assert row.detail.endswith("given: the elements of order differ")


def test_the_interpreter_checks_an_order() -> None:
    kernel = compile(by_order(True), target="interpreter")
    a, c = np.arange(16 * N, dtype=np.float32).reshape(16, N), np.zeros((16, N), np.float32)
    kernel(a, np.arange(16, dtype=np.int32)[::-1].copy(), c)
    assert (a == c).all()
    with pytest.raises(KernelError, match="elements of order are equal"):
        kernel(a, np.zeros(16, np.int32), c)


def test_two_elements_in_one_place() -> None:
    p = plan()
    (b,) = (b for b in p.layouts if b.name == "left")
    first, *rest = p.layouts[b].iters
    flat = replace(p.layouts[b], iters=(replace(first, stride=0), *rest))
    row = failed(replace(p, layouts={**p.layouts, b: flat}), "one place for each element")
    assert row.example.startswith("internal error: left[0, 0] and left[")
    assert "are in one place" in row.example and 'left = T.alloc_shared((128, 64), "float16")' in row.example


def test_boxes_are_not_the_tile() -> None:
    p = plan()
    name, copy = next(iter(p.bulk.items()))
    short = replace(copy, pieces=(*copy.pieces, copy.pieces[0]))
    row = failed(replace(p, bulk={**p.bulk, name: short}), "boxes are the tile")
    assert f"{2 * copy.bytes} bytes, for a tile of 16384" in row.example
    assert shown("T.copy(A[by * 128, k * 64], left)") in row.example


def test_of_the_code() -> None:
    """Who arrives, and fences: with the user's line, where lowering has kept it."""
    p = plan()
    (e,) = emitted(p, compile(gemm, target="cuda:sm_90a").backend)
    few = replace(e, counts=dict.fromkeys(e.counts, 2))
    rows = {r.what: r for r in verified(p, emitted=[few])}
    assert "awaits 2 arrivals, and 1 are told of in the plan" in rows["arrivals = participants"].example
    open_way = replace(e, meanings={f: m for f, m in e.meanings.items() if m is not Meaning.FENCE})
    rows = {r.what: r for r in verified(p, emitted=[open_way])}
    assert "was written by threads, and" in rows["fences between threads and engines"].example
