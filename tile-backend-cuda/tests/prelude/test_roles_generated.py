"""Loops whose copies run ahead, beside other uses of their tiles, sums and tensors; emulated, against the interpreter."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from loops import BODIES, COUNTS, kernel

import tile_core.language as T
from tile_backend_cuda.backend import CudaBackend
from tile_backend_cuda.prelude.emulate import CudaEmulator
from tile_core import interpreter
from tile_core.backend import Source
from tile_core.hardware import Target, TargetInfo
from tile_core.runtime.pipeline import make_plan

CORES = 3  # so that small grids already give a block several tiles
WIDE = {"block": (128, 128), "threads": 256}
CASES = [
    pytest.param(body, {}, arch, id=f"{body.__name__}-{arch}")
    for body in BODIES
    for arch in ("sm_90a", "sm_80")
] + [
    pytest.param(body, WIDE, "sm_90a", id=f"{body.__name__}-wide")
    for body in BODIES
    if body.__name__ in ("product_of_a_product", "counted_by_a_table")
]


def info(arch: str) -> TargetInfo:
    return replace(CudaBackend().info(Target("cuda", arch)), cores=CORES)


def emitted(body: Any, arch: str, **how: Any) -> tuple[Any, Source]:
    """The program, and its source for three cores: blocks have several tiles of the grid."""
    where = info(arch)
    program = kernel(body, **how)().program
    return program, CudaBackend().codegen(where).emit(make_plan(program, where))


def arguments(program: Any) -> list[Any]:
    """Small integers, so that any order of sums is exact."""
    rng = np.random.default_rng(7)
    made = [
        rng.integers(-2, 3, p.tensor.shape).astype(p.tensor.dtype.as_numpy())
        for p in program.params
        if p.name != "E"
    ]
    return [*made[:2], np.array(COUNTS, np.int32), *made[2:]]


@pytest.mark.parametrize(("body", "how", "arch"), CASES)
def test_body(body: Any, how: dict[str, Any], arch: str, emulator: None):
    program, source = emitted(body, arch, **how)
    given = arguments(program)
    wanted = [np.copy(x) for x in given]
    interpreter.run(program, wanted)
    for mode in ("late", "early", "random"):
        got = [np.copy(x) for x in given]
        for report in CudaEmulator().run(source, got, {}, mode=mode):
            assert report.clean, str(report)
        for x, y in zip(got, wanted, strict=True):
            np.testing.assert_array_equal(x, y)


BY_NAME = {body.__name__: body for body in BODIES}


@pytest.mark.parametrize(
    ("name", "stored"),
    [
        ("two_products", 1),
        ("stored_in_one_of_two_branches", 2),
        ("stored_in_each_iteration", 1),
        ("tensor_read_after_store", 1),
    ],
)
def test_tensors_stored_by_boxes(name: str, stored: int):
    """Only what nothing else of the launch touches at the same time: O always, P where its other use is another branch."""
    _, source = emitted(BY_NAME[name], "sm_90a")
    maps = {row["of"] for row in source.launch.extra["tensor_maps"]}
    assert len(maps & {"O", "P"}) == stored


def test_count_is_read_once():
    """A count from a table is not asked for in each iteration: waits make the compiler forget it."""
    _, source = emitted(BY_NAME["counted_by_a_table"], "sm_90a")
    assert not any("E[" in line for line in source.text.splitlines() if line.lstrip().startswith("for "))


def test_no_product_is_serialised():
    """The waits of steps that the first iterations leave out stand outside of branches; else ptxas puts in its own."""
    _, source = emitted(BY_NAME["product_of_a_product"], "sm_90a", **WIDE)
    artifact = CudaBackend().compiler(info("sm_90a")).compile(source, {})
    assert artifact.findings == ()


@T.prim_func
def counted_by_a_variable(
    A: T.Tensor((256, 256), "float16"),
    B: T.Tensor((256, 64), "float16"),
    E: T.Tensor((4,), "int32"),
    C: T.Tensor((256, 64), "float32"),
):
    with T.Kernel(4, threads=128) as bx:
        a = T.alloc_shared((64, 64), "float16")
        b = T.alloc_shared((64, 64), "float16")
        c = T.alloc_fragment((64, 64), "float32")
        count = T.alloc_var("int32")
        count = E[bx]
        T.clear(c)
        for k in T.Pipelined(count, num_stages=2):
            T.copy(A[bx * 64, k * 64], a)
            T.copy(B[k * 64, 0], b)
            T.gemm(a, b, c)
        T.copy(c, C[bx * 64, 0])


def test_a_loop_that_one_role_alone_can_count(emulator: None):
    """Its copies are the threads', its products are the matrix engine's all the same."""
    where = info("sm_90a")
    source = CudaBackend().codegen(where).emit(make_plan(counted_by_a_variable.program, where))
    kernel = source.text.split('extern "C"', 1)[1]
    assert "wgmma_m64n64k16" in kernel and "tma_load" not in kernel
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((256, 256), (256, 64)))
    counts, c = np.array([0, 1, 3, 4], np.int32), np.zeros((256, 64), np.float32)
    wanted = np.concatenate(
        [
            a[64 * n : 64 * n + 64, : 64 * e].astype(np.float32) @ b[: 64 * e].astype(np.float32)
            for n, e in enumerate(counts)
        ]
    )
    for mode in ("late", "random"):
        for report in CudaEmulator().run(source, [a, b, counts, c], {}, mode=mode):
            assert report.clean, str(report)
        assert (c == wanted).all()
