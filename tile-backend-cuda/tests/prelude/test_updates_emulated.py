"""Atomic updates by vectors, under the emulator: where they are used, where they must not be, and what they add up to."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest
import update_cases as kernels
from hypothesis import given, settings
from hypothesis import strategies as st

from tile_backend_cuda.backend import CudaBackend
from tile_backend_cuda.prelude.emulate import CudaEmulator, kernel_of
from tile_core import interpreter
from tile_core.hardware import Target
from tile_core.testing import arguments, stages
from tile_core.testing.kernels import Case

sys.path.insert(0, str(Path(__file__).parents[3] / "examples"))

LOOSE = {"float16": 2e-2, "bfloat16": 1e-1, "float32": 1e-4}
BACKEND = CudaBackend()


def case(name: str, make: Any, dtype: str) -> Case:
    loose = LOOSE.get(dtype, 0)
    return Case(name, make, frozenset([dtype]), rtol=loose, atol=loose)


def source_of(case: Case, arch: str) -> Any:
    return stages.emit(case, BACKEND, BACKEND.info(Target("cuda", arch)))


def calls(source: Any) -> set[str]:
    """Names of the atomic functions that the kernels call."""
    text = kernel_of(source.text).split('extern "C"', 1)[1]
    return set(re.findall(r"\b((?:tma_)?reduce_\w+|tile_atomic_\w+)\(", text))


def passes(case: Case, arch: str) -> set[str]:
    source = source_of(case, arch)
    made = arguments.made(case)
    wanted = arguments.copies(made)
    interpreter.run(case.program, wanted)
    for mode in ("late", "random"):
        got = arguments.copies(made)
        for report in CudaEmulator().run(source, got, case.dims, mode=mode):
            assert report.clean, str(report)
        arguments.compare(case, got, wanted)
    return calls(source)


@pytest.mark.parametrize(
    ("dtype", "arch", "named"),
    [
        ("float32", "sm_90a", "reduce_add_f32x4"),
        ("float16", "sm_90a", "reduce_add_f16x8"),
        ("bfloat16", "sm_120a", "reduce_add_bf16x8"),
        ("float16", "sm_80", "reduce_add_f16x2"),
        ("float16", "sm_70", "reduce_add_f16x2"),
        ("bfloat16", "sm_80", "tile_atomic_add"),
        ("float32", "sm_89", "tile_atomic_add"),
        ("float64", "sm_90a", "tile_atomic_add"),
        ("int32", "sm_90a", "tile_atomic_add"),
        ("int64", "sm_90a", "tile_atomic_add"),
    ],
)
def test_widest_that_the_architecture_has(dtype: str, arch: str, named: str, emulator: None):
    assert passes(case("whole", lambda: kernels.tile_added(16, 64, 16, 64, 64, 2, dtype), dtype), arch) == {
        named
    }


@pytest.mark.parametrize("dtype", ["float16", "float32", "bfloat16"])
@pytest.mark.parametrize("n", [1, 33, 102, 104])
def test_tensors_that_end_inside_a_tile(n: int, dtype: str, emulator: None):
    passes(case("tails", lambda: kernels.tile_added(7, n, 4, 64, 96, 2, dtype), dtype), "sm_90a")


@pytest.mark.parametrize(
    ("n", "shift", "named"),
    [
        (300, 4, {"reduce_add_f32x4"}),
        (300, 2, {"reduce_add_f32x2"}),
        (300, 1, {"tile_atomic_add"}),
    ],
)
def test_alignment_is_proved(n: int, shift: int, named: set[str], emulator: None):
    kernel = case("shifted", lambda: kernels.loop_added(n, 128, 32, shift, "float32"), "float32")
    assert passes(kernel, "sm_90a") == named


def test_single_elements_where_a_run_crosses_the_end(emulator: None):
    kernel = case("end", lambda: kernels.loop_added(300, 128, 32, 4, "float32", short=3), "float32")
    assert passes(kernel, "sm_90a") == {"reduce_add_f32x4", "tile_atomic_add"}


def test_orders_are_kept(emulator: None):
    strong = case("ordered", lambda: kernels.loop_added(256, 128, 32, 4, "float32", "acq_rel"), "float32")
    assert passes(strong, "sm_90a") == {"tile_atomic_add"}
    body = kernel_of(source_of(strong, "sm_90a").text).split('extern "C"', 1)[1]
    assert body.count("fence_gpu();") == 2


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "float64"])
def test_two_updates_of_an_element(dtype: str, emulator: None):
    passes(case("twice", lambda: kernels.twice(64, 32, dtype), dtype), "sm_90a")


@pytest.mark.parametrize("op", ["max", "min"])
@pytest.mark.parametrize("dtype", ["int32", "uint32", "float32", "float16", "int16"])
def test_operations_without_vectors(op: str, dtype: str, emulator: None):
    found = passes(case(op, lambda: kernels.other(96, 48, op, dtype), dtype), "sm_90a")
    assert found == {f"tile_atomic_{op}"}


@given(
    st.integers(1, 40),
    st.integers(1, 140),
    st.sampled_from([(16, 64), (7, 33), (8, 104), (1, 128)]),
    st.sampled_from([32, 48, 96, 128]),
    st.sampled_from(["float16", "float32", "bfloat16", "int32"]),
    st.sampled_from(["sm_75", "sm_90a"]),
)
@settings(max_examples=12, deadline=None)
def test_any_shape(m: int, n: int, block: tuple[int, int], threads: int, dtype: str, arch: str):
    from tile_core.testing import machine

    if machine.compiler_or_none() is None:
        pytest.skip("no C++ compiler for the machine emulator")
    passes(case("any", lambda: kernels.tile_added(m, n, *block, threads, 2, dtype), dtype), arch)


@pytest.mark.parametrize(("m", "n", "k", "splits"), [(64, 64, 256, 4), (33, 104, 33, 2), (1, 16, 200, 3)])
@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90a"])
def test_product_split_along_k(arch: str, m: int, n: int, k: int, splits: int, emulator: None):
    from split_k import split_k

    found = passes(
        Case(
            "split",
            lambda: split_k.__wrapped__(m, n, k, splits=splits),
            frozenset(["float16", "float32"]),
            rtol=1e-3,
            atol=1e-2,
        ),
        arch,
    )
    assert ("tma_reduce_add_2d" in found) == (arch == "sm_90a")
