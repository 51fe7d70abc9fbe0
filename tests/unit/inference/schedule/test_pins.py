"""Stages and an order that the user fixes: they are followed, the rest is inferred, and a contradiction is an error at its line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from simulator import attack

import tile_core as tile
import tile_core.language as T
from tile_backend_cuda.targets import TARGETS
from tile_core import settings
from tile_core.errors import KernelError
from tile_core.hardware import Target
from tile_core.inference.infer import infer
from tile_core.inference.plan import TilePlan
from tile_core.inference.schedule.check import faults
from tile_core.inference.schedule.program import Schedule
from tile_core.testing.emulated import emulated

INFO = {i.target.arch: i for i in TARGETS}
ARCHS = ("sm_90a", "sm_80")  # copies in a stream of their own, and by the threads
OPS = ("copy1", "gemm0", "parallel0", "copy2", "gemm1")


def chain(stage: Any, order: Any, num_stages: int = 0, rows: int = 384) -> Any:
    """max(A B^T, 0) B: what the second product needs comes from the first one through registers."""

    @T.prim_func
    def kernel(
        A: T.Tensor((128, 64), "float16"),
        B: T.Tensor((rows, 64), "float16"),
        C: T.Tensor((128, 64), "float32"),
    ):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((128, 64), "float16")
            b = T.alloc_shared((64, 64), "float16")
            s = T.alloc_fragment((128, 64), "float32")
            w = T.alloc_fragment((128, 64), "float16")
            c = T.alloc_fragment((128, 64), "float32")
            T.copy(A, a)
            T.clear(c)
            for k in T.Pipelined(rows // 64, num_stages=num_stages, stage=stage, order=order):
                T.copy(B[k * 64, 0], b)
                T.gemm(a, b, s, transpose_B=True, clear_accum=True)
                for i, j in T.Parallel(128, 64):
                    s[i, j] = T.max(s[i, j], 0)
                T.copy(s, w)
                T.gemm(w, b, c)
            T.copy(c, C)

    return kernel


def product(stage: Any, order: Any, num_stages: int = 0) -> Any:
    @T.prim_func
    def kernel(
        A: T.Tensor((128, 512), "float16"),
        B: T.Tensor((512, 128), "float16"),
        rows: T.Tensor((8,), "int32"),
        C: T.Tensor((128, 128), "float32"),
    ):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((128, 64), "float16")
            b = T.alloc_shared((64, 128), "float16")
            c = T.alloc_fragment((128, 128), "float32")
            T.clear(c)
            for k in T.Pipelined(8, num_stages=num_stages, stage=stage, order=order):
                T.copy(A[0, k * 64], a)
                row = rows[k] * 64  # a name: it has no number
                T.copy(B[row, 0], b)
                T.gemm(a, b, c)
            T.copy(c, C)

    return kernel


def planned(kernel: Any, arch: str, optimal: bool = False) -> TilePlan:
    return infer(kernel.program, INFO[arch], optimal)


def only(p: TilePlan) -> Schedule:
    (found,) = p.schedules.values()
    assert not faults(found)
    assert attack(found, trips=(1, 2, 5, 9)) is None
    return found


def follows(s: Schedule, stage: tuple[int, ...], order: tuple[int, ...], ops: tuple[str, ...]) -> bool:
    """Whether the steps of each stream have these stages, counted from the same step, and this order. -1: whichever."""
    for steps in s.streams.values():
        mine = {x.op: x.stage for x in steps}
        wanted = {op: n for op, n in zip(ops, stage, strict=True) if op in mine and n >= 0}
        if len({mine[op] - n for op, n in wanted.items()}) > 1:
            return False
        numbers = dict(zip(ops, order, strict=True))
        placed = [numbers[x.op] for x in steps if numbers.get(x.op, -1) >= 0]
        if placed != sorted(placed):
            return False
    return True


FULL = [
    ((0, 1, 1, 1, 1), (0, 1, 2, 3, 4)),
    ((0, 1, 1, 1, 2), (0, 1, 3, 4, 2)),
    ((0, 1, 2, 2, 2), (0, 3, 1, 2, 4)),
    ((0, 2, 2, 2, 3), (4, 0, 2, 3, 1)),
    ((0, 0, 0, 0, 0), (0, 1, 2, 3, 4)),
]
PARTS = [
    ((0, 1, -1, -1, 2), (0, 1, -1, -1, 2)),
    ((-1, -1, -1, -1, 2), (-1, -1, -1, -1, 0)),
    ((-1, 0, -1, -1, 1), (-1, 1, -1, -1, 0)),
    ((0, -1, -1, -1, -1), (0, -1, -1, -1, -1)),
    ((-1, -1, -1, -1, -1), (-1, -1, -1, -1, -1)),
]


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize(("stage", "order"), FULL + PARTS)
def test_stages_and_order_are_followed(arch: str, stage: tuple[int, ...], order: tuple[int, ...]) -> None:
    s = only(planned(chain(stage, order), arch))
    assert follows(s, stage, order, OPS)


@pytest.mark.parametrize("arch", ARCHS)
def test_they_decide(arch: str) -> None:
    """What one of the pins gives breaks another one: the check above can fail."""
    made = [only(planned(chain(*pins), arch)) for pins in FULL]
    for stage, order in FULL:
        assert not all(follows(s, stage, order, OPS) for s in made)


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2)])
def test_copies_start_in_the_order_that_is_wanted(order: tuple[int, ...]) -> None:
    s = only(planned(product((0, 0, 2), order), "sm_90a"))
    names = [x.op for x in s.streams["copy"]]
    assert names == [op for _, op in sorted(zip(order, ("copy0", "copy1"), strict=False))]


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize(("far", "slots"), [(0, 1), (1, 2), (2, 3), (3, 4)])
def test_stages_alone_give_rings_their_slots(arch: str, far: int, slots: int) -> None:
    s = only(planned(product((0, 0, far), (0, 1, 2)), arch))
    assert s.depth["a"] == s.depth["b"] == slots


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("num_stages", [3, 4, 5])
def test_num_stages_gives_them_as_many_as_it_says(arch: str, num_stages: int) -> None:
    s = only(planned(product((0, 0, 2), (0, 1, 2), num_stages), arch))
    assert s.depth["a"] == s.depth["b"] == num_stages
    assert follows(s, (0, 0, 2), (0, 1, 2), ("copy0", "copy1", "gemm0"))


def refused(kernel: Any, arch: str = "sm_90a") -> KernelError:
    with pytest.raises(KernelError) as error:
        planned(kernel, arch)
    return error.value


def line(error: KernelError) -> str:
    """The user's line that the error points at."""
    assert error.span is not None
    with open(__file__, encoding="utf8") as file:
        return file.read().splitlines()[error.span.line - 1].strip()


CONTRADICTIONS = [
    # stage, order, num_stages, the line, what the error says
    ((1, 0, 0, 0, 0), (0, 1, 2, 3, 4), 0, "T.gemm(a, b, s,", "gemm0 reads b, which copy1 writes"),
    ((0, 0, 0, 0, 0), (1, 0, 2, 3, 4), 0, "T.gemm(a, b, s,", "gemm0 reads b, which copy1 writes"),
    (
        (0, 1, 1, 1, 2),
        (0, 1, 2, 3, 4),
        0,
        "T.copy(s, w)",
        "copy2 writes w, which gemm1 reads 1 iteration before",
    ),
    ((0, 2, -1, -1, 1), (0, 1, -1, -1, 2), 0, "T.gemm(w, b, c)", "gemm1 reads w, which copy2 writes"),
    ((0, 1, 1, 1, 3), (0, 1, 3, 4, 2), 2, "T.copy(B[k * 64, 0], b)", "(num_stages=2)"),
]


@pytest.mark.parametrize(("stage", "order", "num_stages", "at", "says"), CONTRADICTIONS)
@pytest.mark.parametrize("arch", ARCHS)
def test_a_contradiction_is_an_error_at_the_line(
    arch: str, stage: tuple[int, ...], order: tuple[int, ...], num_stages: int, at: str, says: str
) -> None:
    error = refused(chain(stage, order, num_stages), arch)
    assert line(error).startswith(at)
    assert says in (error.why or "")
    assert "stage" in (error.help or "")


def test_who_is_behind_it_is_named() -> None:
    error = refused(chain((0, 2, -1, -1, 1), (0, 1, -1, -1, 2)))
    assert "from copy2, which comes after gemm0 in stage 2" in str(error)
    assert "give gemm1 stage 2 or later, or gemm0 stage 1 or earlier" in str(error)


def test_other_targets_refuse_it_too() -> None:
    wrong = chain(*CONTRADICTIONS[0][:2])
    for target in ("cpu", "interpreter"):
        with pytest.raises(KernelError, match="runs before what it needs"):
            _ = tile.compile(wrong, target=target).plan


def test_one_number_for_each_step() -> None:
    error = refused(product((0, 0), (0, 1)))
    assert line(error).startswith("for k in T.Pipelined(8")
    assert "have 2 numbers, the loop's body has 3 steps" in str(error)
    assert "copy0 (line" in (error.why or "")
    assert "copy0 and copy1 have one place, 1" in str(refused(product((0, 0, 0), (1, 1, 2))))


@pytest.mark.parametrize("arch", ARCHS)
def test_a_ring_that_does_not_fit_is_refused(arch: str) -> None:
    error = refused(product((0, 0, 30), (0, 1, 2)), arch)
    assert "no schedule has these stages and this order" in str(error)
    assert "a, b" in (error.why or "")


def data(rows: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    a, b = rng.standard_normal((128, 64)), rng.standard_normal((rows, 64))
    return a.astype(np.float16), b.astype(np.float16)


@pytest.mark.parametrize("rows", [64, 128, 384])
@pytest.mark.parametrize(("stage", "order"), [*FULL[1:4], PARTS[0], PARTS[2]])
def test_the_result_is_the_interpreter_s(stage: tuple[int, ...], order: tuple[int, ...], rows: int) -> None:
    kernel = chain(stage, order, rows=rows)
    a, b = data(rows)
    want = np.zeros((128, 64), np.float32)
    tile.compile(kernel, target="interpreter")(a, b, want)
    assert np.abs(want).max() > 1
    for arch in ARCHS:
        made = tile.compile(kernel).for_target(Target.parse(f"cuda:{arch}"))
        for mode in ("early", "late", "random"):
            got = np.zeros_like(want)
            emulated(made, [a, b, got], {}, mode)
            assert np.abs(got - want).max() < 2e-2 * np.abs(want).max()


def test_the_solver_follows_them_too(tmp_path: Any) -> None:
    with settings.scope(cache_dir=str(tmp_path)):
        for stage, order in PARTS:
            fast = only(planned(chain(stage, order), "sm_90a"))
            best = only(planned(chain(stage, order), "sm_90a", optimal=True))
            assert follows(best, stage, order, OPS)
            assert best.interval <= fast.interval
