"""Generated kernels with one thing taken away must not pass under the emulator: barriers, the order of matrices, guards."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

import tile_core.language as T
from tile_backend_metal import atoms
from tile_backend_metal.backend import MetalBackend
from tile_backend_metal.compiler.lint import faults
from tile_backend_metal.emulator import MetalEmulator, run
from tile_backend_metal.launcher import order
from tile_core import interpreter
from tile_core.backend import Source
from tile_core.hardware import Target, TargetInfo
from tile_core.layout.digits import lane, reg, tile
from tile_core.testing import arguments, stages
from tile_core.testing.kernels import BY_NAME, Case

METAL = MetalBackend()
BARRIER = re.compile(r"metal::threadgroup_barrier\([^;]*\);")
CASES = ("gemm-float16-nt", "gemm-float16-ragged", "attention-float16-64", "transpose-50", "prefix-sum")

pytestmark = pytest.mark.usefixtures("emulator")


def emitted(name: str, info: TargetInfo | None = None) -> Source:
    return stages.emit(BY_NAME[name], METAL, info or METAL.info(Target("metal")))


def faulty(case: Case, source: Source, mode: str) -> bool:
    made = arguments.made(case)
    wanted = arguments.copies(made)
    interpreter.run(case.program, wanted)
    reports = MetalEmulator().run(source, made, case.dims, mode=mode)
    if not all(r.clean for r in reports):
        return True
    try:
        arguments.compare(case, made, wanted)
    except AssertionError:
        return True
    return False


def without_a_barrier() -> Iterator[Any]:
    for name in CASES:
        source = emitted(name)
        for n, m in enumerate(BARRIER.finditer(source.text)):
            text = source.text[: m.start()] + ";" + source.text[m.end() :]
            yield pytest.param(name, replace(source, text=text), id=f"{name}-{n}")


@pytest.mark.parametrize(("name", "source"), list(without_a_barrier()))
def test_a_barrier_that_is_missing(name: str, source: Source) -> None:
    assert any(faulty(BY_NAME[name], source, mode) for mode in ("late", "early", "random"))


def test_there_are_barriers() -> None:
    assert len(list(without_a_barrier())) >= 10


@pytest.mark.parametrize(
    ("name", "old", "new", "rule"),
    [
        ("gemm-float16-nn", r"(_threadgroup)_from_device\(", r"_device_from_device(", "calls"),
        ("gemm-float16-nn", r"_device_from_thread\(", r"_device_from_threadgroup(", "calls"),
        (
            "gemm-float16-nn",
            r"reinterpret_cast<threadgroup half\*>\(tile_arena",
            r"reinterpret_cast<device half*>(tile_arena",
            "casts",
        ),
        ("gemm-float16-nn", r"device half\* A", "half* A", "address spaces"),
        ("gemm-float16-nn", r"\[\[buffer\(2\)\]\]", "[[buffer(3)]]", "buffers"),
        ("gemm-float16-nn", r"thread_index_in_threadgroup", "thread_position_in_threadgroup", "attributes"),
        ("gemm-float16-nn", r"tile_arena\[\d+\]", "tile_arena[32784]", "threadgroup memory"),
        (
            "gemm-float16-nn",
            r"max_total_threads_per_threadgroup\(\d+\)",
            "max_total_threads_per_threadgroup(1025)",
            "threads",
        ),
        ("histogram", r"tile_atomic_add_device\(&", "tile_atomic_add_threadgroup(&", "calls"),
        ("math-float32", r"metal::precise::exp\(", "metal::precise::expm1(", "library"),
        ("math-float32", r"const int bx", "const double bx", "words"),
        ("softmax-float32", r"0\.0f", "0.0", "literals"),
    ],
)
def test_what_the_lint_finds_in_generated_code(name: str, old: str, new: str, rule: str) -> None:
    text = emitted(name).text
    head, kernel = text.split("[[kernel", 1)
    kernel = "[[kernel" + kernel
    assert faults(text, "3.1") == ()
    broken = re.sub(old, new, kernel, count=1)
    assert broken != kernel
    assert rule in {f.rule for f in faults(head + broken, "3.1")}


def test_a_barrier_in_a_branch() -> None:
    source = emitted("gemm-float16-ragged")
    text = BARRIER.sub(lambda m: f"if (tile_thread < 64u) {m[0]}", source.text, count=1)
    made = arguments.made(BY_NAME["gemm-float16-ragged"])
    reports = MetalEmulator().run(replace(source, text=text), made, {})
    assert {c for r in reports for c in r.codes} & {"divergent-barrier", "deadlock"}


def test_a_product_in_a_branch() -> None:
    source = emitted("gemm-float16-nn")
    text = source.text.replace(
        "tile_simdgroup_multiply(&", "if (tile_thread % 32 < 16) tile_simdgroup_multiply(&"
    )
    made = arguments.made(BY_NAME["gemm-float16-nn"])
    assert any(
        "divergent-collective" in r.codes for r in MetalEmulator().run(replace(source, text=text), made, {})
    )


def test_rows_and_columns_of_matrices_exchanged() -> None:
    """The emulator has its own picture of the order: code for the transposed one computes something else."""
    turned = tile((8, 8), (lane(2, 8), lane(2), reg(2)), (lane(2, 16), lane(4, 2)))
    info = METAL.info(Target("metal"))
    found = tuple(replace(a, a=turned, b=turned, c=lambda _: turned) for a in info.atoms)
    for name in ("gemm-float16-nn", "gemm-float32-even", "attention-float16-64"):
        assert faulty(BY_NAME[name], emitted(name, replace(info, atoms=found)), "early")


def test_the_elements_of_a_lane_exchanged() -> None:
    source = emitted("gemm-float16-nn")
    text = (
        source.text.replace("= c[0];", "= c[9];").replace("= c[1];", "= c[0];").replace("= c[9];", "= c[1];")
    )
    assert text != source.text
    assert faulty(BY_NAME["gemm-float16-nn"], replace(source, text=text), "early")


def test_an_access_that_no_guard_holds_back() -> None:
    source = emitted("copy-float32-ragged")
    text = re.sub(r"if \([^;{}]*\) \{\n", "if (true) {\n", source.text)
    assert text != source.text
    made = arguments.made(BY_NAME["copy-float32-ragged"])
    assert any("global-bounds" in r.codes for r in MetalEmulator().run(replace(source, text=text), made, {}))


def test_threadgroup_memory_begins_as_nothing() -> None:
    text = """#include <metal_stdlib>
[[kernel, max_total_threads_per_threadgroup(32)]]
void main_0(
    device float* A [[buffer(0)]],
    uint tile_thread [[thread_index_in_threadgroup]]) {
  alignas(16) threadgroup uchar tile_arena[128];
  threadgroup float* const t = reinterpret_cast<threadgroup float*>(tile_arena + 0);
  A[tile_thread] = t[tile_thread];
}
"""
    import numpy as np

    report = run(text, "main_0", [np.zeros(32, np.float32)], grid=1, threads=32, shared_bytes=128)
    assert "uninitialised" in report.codes
    assert report.findings[0].lines[0] == 8


def test_a_barrier_must_order_threadgroup_memory() -> None:
    source = emitted("transpose-50")
    text = BARRIER.sub("metal::threadgroup_barrier(metal::mem_flags::mem_device);", source.text)
    made = arguments.made(BY_NAME["transpose-50"])
    assert any("bad-operand" in r.codes for r in MetalEmulator().run(replace(source, text=text), made, {}))


def turning() -> Any:
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            for k in T.serial(3):
                for i in T.Parallel(64):
                    B[(i + k) % 64] = A[i] * k

    return main


def exchanging() -> Any:
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            for i in T.Parallel(64):
                B[i] = A[i] * 2
            for i in T.Parallel(64):
                A[i] = B[(i + 1) % 64]

    return main


@pytest.mark.parametrize("make", [turning, exchanging])
def test_a_barrier_must_order_what_threads_exchange_in_device_memory(make: Any) -> None:
    case = Case("device", make, frozenset())
    source = stages.emit(case, METAL, METAL.info(Target("metal")))
    assert not faulty(case, source, "late")
    text = source.text.replace("metal::mem_flags::mem_device | ", "")
    assert text != source.text
    reports = MetalEmulator().run(replace(source, text=text), arguments.made(case), {}, mode="late")
    assert {c for r in reports for c in r.codes} & {"race", "overwritten"}


def test_the_launchers_question_about_the_order() -> None:
    """What the device is asked before its first product: the emulator's picture and the atom table answer alike."""
    import numpy as np

    out = np.zeros(order.THREADS * order.ROW, np.int32)
    report = run(
        order.TEXT, order.ENTRY, [out], grid=1, threads=order.THREADS, shared_bytes=4 * order.THREADS
    )
    assert report.clean, str(report)
    order.compare(out.tolist(), "the emulator")
    assert out[:9].tolist() == [0, 1, 0, 2, 3, 1, 8, 9, 2]
    assert atoms.SIMDGROUP_8X8.shape == (8, 8)
