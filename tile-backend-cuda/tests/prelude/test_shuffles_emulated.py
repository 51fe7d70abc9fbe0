"""Fragments that change their layout by shuffles, under the emulator: any assignment of bits, words of several elements."""

from __future__ import annotations

from typing import Any

import pytest
import shuffle_cases as kernels
from hypothesis import given, settings
from hypothesis import strategies as st

from tile_backend_cuda.backend import CudaBackend
from tile_backend_cuda.prelude.emulate import CudaEmulator, kernel_of
from tile_core import interpreter
from tile_core.hardware import Target
from tile_core.layout.convert import Kind, convert
from tile_core.layout.layout import Axis, Iter, Layout
from tile_core.testing import arguments, machine, stages
from tile_core.testing.kernels import Case

BACKEND = CudaBackend()
LOOSE = {"float16": 2e-2, "bfloat16": 1e-1, "float32": 1e-4, "float64": 1e-12}


def passes(make: Any, dtype: str, arch: str = "sm_80") -> str:
    """Runs a kernel; gives the text of its code."""
    loose = LOOSE.get(dtype, 0)
    case = Case("shuffled", make, frozenset([dtype]), rtol=loose, atol=loose)
    source = stages.emit(case, BACKEND, BACKEND.info(Target("cuda", arch)))
    made = arguments.made(case)
    wanted = arguments.copies(made)
    interpreter.run(case.program, wanted)
    for mode in ("late", "random"):
        got = arguments.copies(made)
        for report in CudaEmulator().run(source, got, {}, mode=mode):
            assert report.clean, str(report)
        arguments.compare(case, got, wanted)
    return kernel_of(source.text).split('extern "C"', 1)[1]


@st.composite
def warp_layouts(draw: st.DrawFn) -> tuple[Layout, Layout, int]:
    """Two layouts of one tile over one or two warps that differ in lanes and registers, and the number of threads."""
    warps, kept = draw(st.integers(0, 1)), draw(st.integers(0, 2))
    moved = draw(st.integers(0, 2))
    lanes = [(Axis.THREAD, 1 << k) for k in range(5)]

    def one() -> list[tuple[Axis, int]]:
        numbers = draw(st.permutations(range(moved + kept)))
        registers = [(Axis.REGISTER, 1 << k) for k in numbers]
        places = draw(st.permutations(lanes + registers[:moved]))
        return [*[(Axis.THREAD, 32)][:warps], *places, *registers[moved:]]

    have, need = one(), one()
    bits = len(have)
    shape = (1 << bits // 2, 1 << bits - bits // 2)
    a, b = (Layout(shape, tuple(Iter(2, s, axis) for axis, s in places)) for places in (have, need))
    return a, b, 32 << warps


@given(warp_layouts(), st.sampled_from(["float32", "float16", "int8", "float64", "bool"]))
@settings(max_examples=25, deadline=None)
def test_any_assignment_of_bits(drawn: tuple[Layout, Layout, int], dtype: str):
    if machine.compiler_or_none() is None:
        pytest.skip("no C++ compiler for the machine emulator")
    have, need, threads = drawn
    text = passes(lambda: kernels.relaid(have, need, threads, dtype), dtype)
    bits = 8 if dtype == "bool" else int(dtype.lstrip("abcdefghijklmnopqrstuvwxyz"))
    planned = convert(have, need, bits).kind
    assert planned in (Kind.NOTHING, Kind.REGISTERS, Kind.SHUFFLE)
    assert ("shfl_" in text) == (planned is Kind.SHUFFLE)
    assert "__syncthreads" not in text


MMA = Layout(
    (16, 8),
    (Iter(2, 2, Axis.REGISTER), Iter(8, 4, Axis.THREAD), Iter(4, 1, Axis.THREAD), Iter(2, 1, Axis.REGISTER)),
)
ROWS = Layout((16, 8), (Iter(16, 2, Axis.THREAD), Iter(2, 1, Axis.THREAD), Iter(4, 1, Axis.REGISTER)))


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
def test_rows_of_a_matrix_fragment(dtype: str, emulator: None):
    text = passes(lambda: kernels.relaid(MMA, ROWS, 32, dtype), dtype)
    assert "shfl_" in text and "_staged" not in text


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_elements_that_are_left_alone(dtype: str, emulator: None):
    text = passes(lambda: kernels.updated(MMA, ROWS, 32, dtype), dtype)
    assert "shfl_" in text and "_staged" not in text


def test_part_of_a_warp_cannot_shuffle(emulator: None):
    """48 threads: lanes of the last warp that do not exist would be asked."""
    have = Layout((16, 3), (Iter(16, 1, Axis.THREAD), Iter(3, 16, Axis.THREAD)))
    need = Layout((16, 3), (Iter(4, 4, Axis.THREAD), Iter(4, 1, Axis.THREAD), Iter(3, 16, Axis.THREAD)))
    passes(lambda: kernels.relaid(have, need, 48, "float32"), "float32")


SCANS = [
    ((1, 512), 32, "float32", 1, False, "fragment"),
    ((1, 512), 128, "float32", 1, True, "fragment"),
    ((4, 104), 96, "int32", 1, False, "shared"),
    ((4, 104), 48, "int32", 1, True, "shared"),
    ((33, 7), 64, "float16", 0, False, "fragment"),
    ((33, 7), 64, "bfloat16", 1, True, "shared"),
    ((104, 1), 128, "float64", 0, True, "fragment"),
    ((1, 1), 32, "int32", 1, False, "fragment"),
    ((16, 176), 384, "int32", 1, False, "fragment"),
    ((64, 64), 33, "int32", 0, True, "shared"),
]


@pytest.mark.parametrize("kind", ["sum", "max"])
@pytest.mark.parametrize("how", SCANS, ids=str)
def test_scans(how: Any, kind: str, emulator: None):
    passes(lambda: kernels.scanned(*how, kind=kind), how[2])


def test_scans_of_a_warp_need_no_shared_memory(emulator: None):
    text = passes(lambda: kernels.scanned((1, 512), 32, "int32", 1, False, "fragment"), "int32")
    assert "shfl_up" in text and "__syncthreads" not in text


@given(
    st.integers(1, 40),
    st.integers(1, 200),
    st.sampled_from([32, 33, 48, 64, 96, 128]),
    st.integers(0, 1),
    st.booleans(),
    st.sampled_from(["fragment", "shared"]),
    st.sampled_from(["sum", "max"]),
)
@settings(max_examples=15, deadline=None)
def test_scans_of_any_shape(m: int, n: int, threads: int, axis: int, reverse: bool, place: str, kind: str):
    if machine.compiler_or_none() is None:
        pytest.skip("no C++ compiler for the machine emulator")
    passes(lambda: kernels.scanned((m, n), threads, "int32", axis, reverse, place, kind), "int32")
