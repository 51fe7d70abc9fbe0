"""Schedules of real kernels for real targets: streams, rings, waits, pins, and what is left alone."""

from __future__ import annotations

import time
from typing import Any

import dequant_gemm
import flash_attention
import gemm_relu
import pytest
from simulator import attack

import tile_core.language as T
from tile_backend_cuda.targets import TARGETS
from tile_core.errors import KernelError
from tile_core.inference.infer import infer
from tile_core.inference.plan import TilePlan
from tile_core.inference.schedule.check import faults
from tile_core.inference.schedule.engines import engine_of
from tile_core.inference.schedule.loops import schedules
from tile_core.inference.schedule.program import Schedule

INFO = {i.target.arch: i for i in TARGETS}
BIG = dict(M=4096, N=4096, K=4096, block_M=128, block_N=128, block_K=64, num_stages=4)
LONG = dict(batch=1, heads=2, seq_q=1024, seq_kv=1024, dim=128, block_M=128, block_N=128, threads=256)


def plan(jit: Any, arch: str, **values: Any) -> TilePlan:
    kernel, _ = jit.kernel((), values, "cpu")
    return infer(kernel.program, INFO[arch])


def made(kernel: Any, arch: str = "sm_90a") -> TilePlan:
    return infer(kernel.program, INFO[arch])


def only(p: TilePlan) -> Schedule:
    assert len(p.schedules) == 1
    (found,) = p.schedules.values()
    assert not faults(found)
    assert attack(found, trips=(1, 2, 5, 9)) is None
    return found


def waits(s: Schedule, op: str) -> list[tuple[str, tuple[str, ...], int]]:
    """(kind, producers, distance) of what an op waits for."""
    return [(s.tokens[w.token].kind, s.tokens[w.token].producers, w.distance) for w in s.step(op).waits]


def test_gemm_of_signals() -> None:
    s = only(plan(gemm_relu.gemm_relu, "sm_90a", **BIG))
    assert s.depth == {"A_shared": 4, "B_shared": 4, "C_local": 1}
    assert {b.name: d for b, d in s.rings.items()} == {"A_shared": 4, "B_shared": 4}
    assert [x.op for x in s.streams["main"]] == ["gemm0", "gemm0.done"]
    assert [x.op for x in s.streams["copy"]] == ["copy0", "copy1"]
    assert waits(s, "gemm0") == [("signal", ("copy0", "copy1"), 0)]
    assert waits(s, "gemm0.done") == [("group", ("gemm0",), 1)]
    assert s.step("gemm0.done").stage == 1
    assert waits(s, "copy0") == [("signal", ("gemm0.done",), 4)]
    assert waits(s, "copy1") == []
    assert {t.slots for t in s.tokens.values() if t.kind == "signal"} == {4}


def wide_gemm(M: int = 4096, stages: int = 4, threads: int = 256) -> Any:
    @T.prim_func
    def kernel(
        A: T.Tensor((M, M), "float16"), B: T.Tensor((M, M), "float16"), C: T.Tensor((M, M), "float16")
    ):
        with T.Kernel(T.ceildiv(M, 256), T.ceildiv(M, 128), threads=threads) as (bx, by):
            a = T.alloc_shared((128, 64), "float16")
            b = T.alloc_shared((64, 256), "float16")
            c = T.alloc_fragment((128, 256), "float32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(M, 64), num_stages=stages):
                T.copy(A[by * 128, k * 64], a)
                T.copy(B[k * 64, bx * 256], b)
                T.gemm(a, b, c)
            T.copy(c, C[by * 128, bx * 256])

    return kernel


def test_two_warpgroups_share_a_stream() -> None:
    s = only(made(wide_gemm()))
    assert s.interval == 1024  # the matrix unit and shared memory are both busy all the time
    assert s.bounds["tensor"] == s.bounds["shared"] == 1024
    assert waits(s, "gemm0.done") == [("group", ("gemm0",), 1)]
    first, second = (x.op for x in s.streams["copy"])
    assert (waits(s, first), waits(s, second)) == ([("signal", ("gemm0.done",), 4)], [])
    assert not any(t.kind == "barrier" for t in s.tokens.values())


def test_attention_of_signals() -> None:
    s = only(plan(flash_attention.attention, "sm_90a", **LONG))
    assert s.depth["K_shared"] == s.depth["V_shared"] == 2
    assert set(s.streams) == {"main", "copy"}
    assert [x.op for x in s.streams["copy"]] == ["copy1", "copy4"]
    assert ("signal", ("copy1",), 0) in waits(s, "gemm0")
    assert ("signal", ("copy4",), 0) in waits(s, "gemm1")
    assert not any(p == ("copy4",) for _, p, _ in waits(s, "gemm0"))
    assert waits(s, "copy1") == [("signal", ("gemm0.done",), 2)]
    assert waits(s, "copy4") == [("signal", ("gemm1.done",), 2)]
    # the second product of the iteration before runs beside the softmax of this one
    assert (s.step("gemm0").stage, s.step("gemm1").stage) == (0, 1)
    assert ("group", ("gemm0",), 1) in waits(s, "gemm0.done")
    order = [x.op for x in s.streams["main"]]
    assert order.index("gemm0.done") < order.index("parallel0")


def test_gemm_of_groups() -> None:
    s = only(plan(gemm_relu.gemm_relu, "sm_80", M=4096, N=4096, K=4096))
    assert set(s.streams) == {"main"}
    assert s.depth == {"A_shared": 3, "B_shared": 3, "C_local": 1}
    barriers = [t for t in s.tokens.values() if t.kind == "barrier"]
    assert len(barriers) == 1
    first, second = (n for n in (x.op for x in s.streams["main"]) if n.startswith("copy"))
    assert waits(s, "barrier0") == [("group", (second,), 2), ("barrier", ("barrier0",), 0)]
    assert (s.step(first).stage, s.step("gemm0").stage) == (0, 2)


def test_stages_run_ahead_if_there_are_slots_for_it() -> None:
    s = only(plan(gemm_relu.gemm_relu, "sm_80", **BIG))
    assert s.step("gemm0").stage - s.step("copy0").stage == 3
    assert s.stages("main") == 4


def test_one_stage_overlaps_nothing() -> None:
    for arch in ("sm_80", "sm_90a"):
        s = only(plan(gemm_relu.gemm_relu, arch, **{**BIG, "num_stages": 1}))
        assert set(s.depth.values()) == {1}


def test_attention_of_groups() -> None:
    s = only(plan(flash_attention.attention, "sm_80", **LONG))
    assert set(s.streams) == {"main"}
    assert s.depth["K_shared"] == s.depth["V_shared"] == 2
    assert 1 <= sum(t.kind == "barrier" for t in s.tokens.values()) <= 2
    assert s.step("gemm0").stage == 1  # the copies of the next iteration run beside it


def test_plain_reads_of_a_ring_release_it() -> None:
    p = plan(dequant_gemm.dequant_gemm, "sm_90a", M=64, N=128, K=512, group=8)
    s = only(p)
    loop = [n for n in p.graph.nodes if n.loop == "for0"]
    unpack = next(n.name for n in loop if n.kind == "parallel")
    product = next(n.name for n in loop if n.kind == "gemm")
    assert {d.v for d in s.deps if d.u == unpack and d.kind == "WAR"} & p.bulk.keys()
    told = [t for t in s.tokens.values() if t.kind == "signal" and not set(t.producers) & p.bulk.keys()]
    assert [t.producers for t in told] == [(product,)]  # the last reader tells of all tiles that threads read
    assert sum(t.kind == "barrier" for t in s.tokens.values()) == 2  # what it unpacks is read by other warps


def test_too_many_stages_are_refused() -> None:
    with pytest.raises(KernelError, match="A_shared ring of 40 needs 640 KB of 227 KB") as refused:
        plan(gemm_relu.gemm_relu, "sm_90a", **{**BIG, "num_stages": 40})
    assert refused.value.span is not None
    with pytest.raises(KernelError, match=r"rings of 8 \(A_shared, B_shared\) need 256 KB of 227 KB"):
        plan(gemm_relu.gemm_relu, "sm_90a", **{**BIG, "num_stages": 8})


def test_open_stages_are_as_many_as_needed_and_two_more() -> None:
    p = plan(gemm_relu.gemm_relu, "sm_90a", **BIG)
    engines = engine_of(p.graph, p.info, p.atoms)
    s = schedules(p.graph, p.info, p.atoms, p.layouts, engines, {"for0": None})["for0"]
    pinned = p.schedules["for0"]
    assert s.interval == pinned.interval
    assert 4 <= s.depth["A_shared"] <= 6


def test_no_asynchronous_copies_no_schedule() -> None:
    assert plan(gemm_relu.gemm_relu, "sm_75", M=256, N=256, K=256).schedules == {}
    p = plan(gemm_relu.gemm_relu, "sm_90a", **BIG)
    assert engine_of(p.graph, p.info, p.atoms, copies=()) == {"gemm0": "tensor"}


def chosen(stop: bool = False, table: bool = False, scalar: bool = False) -> Any:
    """A gemm whose tiles are chosen by a table, by a number that the threads compute, or that may end early."""

    @T.prim_func
    def kernel(
        A: T.Tensor((128, 4096), "float16"),
        B: T.Tensor((4096, 128), "float16"),
        rows: T.Tensor((64,), "int32"),
        C: T.Tensor((128, 128), "float32"),
    ):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((128, 64), "float16")
            b = T.alloc_shared((64, 128), "float16")
            c = T.alloc_fragment((128, 128), "float32")
            at = T.alloc_var("int32")
            T.clear(c)
            at = 0
            for k in T.Pipelined(64, num_stages=2):
                if stop:
                    if rows[k] < 0:
                        T.loop_break()
                if scalar:
                    at = at + 1
                row = rows[k] * 64 if table else k * 64
                if scalar:
                    T.copy(A[0, at * 64], a)
                else:
                    T.copy(A[0, row], a)
                T.copy(B[row, 0], b)
                T.gemm(a, b, c)
            T.copy(c, C)

    return kernel


def test_names_of_values_are_everywhere() -> None:
    s = only(made(chosen(table=True)))
    assert set(s.streams) == {"main", "copy"}
    assert not set(s.everywhere) & set(s.ops)


def test_a_copy_that_needs_the_threads_stays_with_them() -> None:
    p = made(chosen(scalar=True))
    assert "copy0" not in engine_of(p.graph, p.info, p.atoms)
    s = only(p)
    assert s.ops["copy0"].stream == "main"
    assert s.ops["copy1"].stream == "copy"


def test_time_for_common_kernels() -> None:
    """Heuristics must be no burden: 5 ms for a gemm and 15 for attention, with room for a slow machine."""
    for jit, values, limit in ((gemm_relu.gemm_relu, BIG, 5), (flash_attention.attention, LONG, 15)):
        p = plan(jit, "sm_90a", **values)
        engines = engine_of(p.graph, p.info, p.atoms)
        best = 1e9
        for _ in range(5):
            begin = time.process_time()
            schedules(p.graph, p.info, p.atoms, p.layouts, engines)
            best = min(best, 1e3 * (time.process_time() - begin))
        assert best < 3 * limit
