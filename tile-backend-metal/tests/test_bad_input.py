"""What a kernel or a target may ask that Metal lacks: one error with the place and what would work."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import tile_core.language as T
from tile_backend_metal.backend import MetalBackend
from tile_core.backend import Source
from tile_core.errors import InternalError, Unsupported
from tile_core.hardware import Target
from tile_core.testing import stages
from tile_core.testing.kernels import BY_NAME, Case, gemm

METAL = MetalBackend()


def emitted(make: Any, target: str = "metal:apple9") -> Source:
    return stages.emit(Case("bad", make, frozenset()), METAL, METAL.info(Target.parse(target)))


def refused(make: Any, message: str, target: str = "metal:apple9") -> str:
    """What to do, by the error, which must have a place."""
    with pytest.raises(Unsupported, match=message) as told:
        emitted(make, target)
    assert told.value.span is not None
    return str(told.value.help)


def copy(dtype: str) -> Any:
    @T.prim_func
    def main(A: T.Tensor((64,), dtype), B: T.Tensor((64,), dtype)):
        with T.Kernel(1, threads=64):
            T.copy(A, B)

    return main


def test_double() -> None:
    assert "no double" in refused(
        lambda: copy("float64"), "A is float64: no code for that type on metal:apple9"
    )


def test_double_inside_an_expression() -> None:
    def make() -> Any:
        @T.prim_func
        def main(A: T.Tensor((64,), "float32")):
            with T.Kernel(1, threads=64):
                for i in T.Parallel(64):
                    A[i] = T.cast(T.cast(A[i], "float64") * 2, "float32")

        return main

    assert "float32" in refused(make, "a value is float64")


def test_bfloat_on_older_families() -> None:
    assert "float16" in refused(lambda: copy("bfloat16"), "A is bfloat16: no code", "metal:apple8")


def test_types_of_four_bits() -> None:
    assert "float8_e4m3fn" in refused(lambda: copy("float4_e2m1fn"), "A is float4_e2m1fn")


def test_more_threadgroup_memory_than_there_is() -> None:
    types = ("float32", "float32", "float32")
    help = refused(
        lambda: gemm(256, 256, 256, (128, 128, 64), types, threads=256, stages=2),
        r"needs \d+ bytes of shared memory, metal:apple9 has 32768",
    )
    assert "smaller tiles" in help


def test_more_threads_than_a_block_has() -> None:
    types = ("float32", "float32", "float32")
    help = refused(
        lambda: gemm(64, 64, 64, (64, 64, 32), types, threads=2048), "at most 1024 threads, not 2048"
    )
    assert "threads=1024" in help


def atomics(dtype: str, order: str = "relaxed") -> Any:
    @T.prim_func
    def main(A: T.Tensor((1,), dtype)):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(32):
                T.atomic_add(A[0], T.cast(1, dtype), memory_order=order)

    return main


@pytest.mark.parametrize("dtype", ["int64", "int8"])
def test_atomics_of_other_widths(dtype: str) -> None:
    assert "32-bit" in refused(lambda: atomics(dtype), f"no atomic add of {dtype}")


def test_orders_need_a_newer_language() -> None:
    help = refused(lambda: atomics("int32", "acq_rel"), "an atomic with the order acq_rel")
    assert "metal:apple9,language=3.2" in help
    text = emitted(lambda: atomics("int32", "acq_rel"), "metal:apple9,language=3.2").text
    assert text.count("metal::atomic_thread_fence(") == 2


def test_printing_and_assertions() -> None:
    def printing() -> Any:
        @T.prim_func
        def main(A: T.Tensor((1,), "float32")):
            with T.Kernel(1, threads=32):
                T.print(A[0], msg="x")

        return main

    def asserting() -> Any:
        @T.prim_func
        def main(A: T.Tensor((1,), "float32")):
            with T.Kernel(1, threads=32):
                T.device_assert(A[0] > 0, "positive")

        return main

    assert "TILE_INTERPRET=1" in refused(printing, "cannot print")
    assert "TILE_INTERPRET=1" in refused(asserting, "cannot stop")


def test_more_buffers_than_metal_passes() -> None:
    @T.prim_func
    def main(
        A0: T.Tensor((32,), "float32"), A1: T.Tensor((32,), "float32"), A2: T.Tensor((32,), "float32"),
        A3: T.Tensor((32,), "float32"), A4: T.Tensor((32,), "float32"), A5: T.Tensor((32,), "float32"),
        A6: T.Tensor((32,), "float32"), A7: T.Tensor((32,), "float32"), A8: T.Tensor((32,), "float32"),
        A9: T.Tensor((32,), "float32"), B0: T.Tensor((32,), "float32"), B1: T.Tensor((32,), "float32"),
        B2: T.Tensor((32,), "float32"), B3: T.Tensor((32,), "float32"), B4: T.Tensor((32,), "float32"),
        B5: T.Tensor((32,), "float32"), B6: T.Tensor((32,), "float32"), B7: T.Tensor((32,), "float32"),
        B8: T.Tensor((32,), "float32"), B9: T.Tensor((32,), "float32"), C0: T.Tensor((32,), "float32"),
        C1: T.Tensor((32,), "float32"), C2: T.Tensor((32,), "float32"), C3: T.Tensor((32,), "float32"),
        C4: T.Tensor((32,), "float32"), C5: T.Tensor((32,), "float32"), C6: T.Tensor((32,), "float32"),
        C7: T.Tensor((32,), "float32"), C8: T.Tensor((32,), "float32"), C9: T.Tensor((32,), "float32"),
        D0: T.Tensor((32,), "float32"), D1: T.Tensor((32,), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=32):
            T.copy(A0, D1)

    assert "fewer tensors" in refused(
        lambda: main, "32 parameters, dimensions and workspaces, Metal passes 31"
    )


@pytest.mark.parametrize(
    ("target", "message", "remedy"),
    [
        ("metal:apple6", "no architecture 'apple6'", "apple7"),
        ("metal:apple9,lang=3.2", "no option 'lang'", "language"),
        ("metal:apple9,language=3.5", "no version 3.5 of MSL", "3.2"),
    ],
)
def test_targets_that_are_none(target: str, message: str, remedy: str) -> None:
    with pytest.raises(Unsupported, match=message) as told:
        METAL.info(Target.parse(target))
    assert remedy in str(told.value.help)


def test_source_that_breaks_a_rule_is_our_fault() -> None:
    info = METAL.info(Target("metal"))
    source = stages.emit(BY_NAME["copy-float32-float32-even"], METAL, info)
    with pytest.raises(InternalError, match=r"line \d+: `double`: there is no double"):
        METAL.compiler(info).compile(
            replace(source, text=source.text.replace("float* const", "double* const")), {}
        )
    with pytest.raises(InternalError, match="compiles metal, this is cuda"):
        METAL.compiler(info).compile(replace(source, language="cuda"), {})
