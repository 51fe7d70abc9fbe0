"""Kernels of the other architectures under the emulator, and instructions that the conformance cases do not use."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hip_oracle import passes
from hip_products import info_of

import tile_core.language as T
from tile_core.testing.kernels import BY_NAME, Case, gemm

NAMES = (
    *(
        "gemm-float16-ragged",
        "gemm-bfloat16-ragged",
        "gemm-float32-ragged",
        "gemm-float16-nt",
        "gemm-float16-tt",
    ),
    *("gemm-int8", "gemm-fp8-nt-128-rows", "attention-float16-75", "softmax-float16", "prefix-sum"),
)
ARCHS = ("gfx950", "gfx1201")


def can(arch: str, case: Case) -> bool:
    return case.dtypes <= info_of(arch).dtypes


@pytest.mark.parametrize(("arch", "name"), [(a, n) for a in ARCHS for n in NAMES if can(a, BY_NAME[n])])
def test_other_architectures(arch: str, name: str) -> None:
    text = passes(BY_NAME[name], arch, ("late",))
    if name.startswith(("gemm-float16", "gemm-bfloat16", "gemm-int8", "gemm-fp8")):
        assert ("wmma" if arch.startswith("gfx1") else "mfma") in text.partition("// ---- kernel")[2]


def product(operand: str, total: str, result: str, **more: Any) -> Case:
    types = (operand, total, result)
    sizes = (64, 64, 128, (32, 32, 64))
    return Case("product", lambda: gemm(*sizes, types, **more), frozenset(types), rtol=2e-2, atol=0.3)


@pytest.mark.parametrize("arch", ["gfx942", "gfx1100", "gfx1201"])
def test_sums_of_sixteen_bits(arch: str) -> None:
    """No instruction has them: they are converted around one that has wider ones."""
    text = passes(product("float16", "float16", "float16"), arch)
    assert re.search(
        r"(mfma|wmma\d)_\d+x16x\d+_f16_f16|mfma_32x32x8_f16_f16", text.partition("// ---- kernel")[2]
    )


@pytest.mark.parametrize("kind", ["float8_e4m3fnuz", "float8_e5m2fnuz"])
def test_floats_without_negative_zero(kind: str) -> None:
    """CDNA3's own kinds of 8-bit floats, in products and in conversions."""
    passes(product(kind, "float32", "float32", transpose_b=True), "gfx942")
    passes(product(kind, "float32", "float32"), "gfx942")

    @T.prim_func
    def converted(
        A: T.Tensor((4, 64), "float32"), B: T.Tensor((4, 64), kind), C: T.Tensor((4, 64), "float32")
    ):
        with T.Kernel(4, threads=64) as bx:
            for i in T.Parallel(64):
                B[bx, i] = A[bx, i] * 1000 * T.exp(-4.0 * bx)
            for i in T.Parallel(64):
                C[bx, i] = B[bx, i]

    passes(Case("converted", lambda: converted, frozenset(("float32",))), "gfx942")


@pytest.mark.parametrize(
    ("dtype", "arch"), [("float16", "gfx90a"), ("float16", "gfx942"), ("bfloat16", "gfx942")]
)
def test_packed_additions(dtype: str, arch: str) -> None:
    @T.prim_func
    def main(A: T.Tensor((16, 64), dtype), B: T.Tensor((16, 64), dtype)):
        with T.Kernel(4, threads=64):
            a = T.alloc_fragment((16, 64), dtype)
            T.copy(A, a)
            T.atomic_add(B[0, 0], a)

    text = passes(Case("packed", lambda: main, frozenset((dtype,)), rtol=5e-2, atol=0.1), arch)
    assert f"atom_add_{'b' if dtype == 'bfloat16' else ''}f16x2(&B" in text


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("arch", ["gfx942", "gfx1100"])
def test_dots(dtype: str, arch: str) -> None:
    """Products of bytes without a matrix instruction for their shape."""

    @T.prim_func
    def main(A: T.Tensor((8, 64), dtype), B: T.Tensor((8, 64), dtype), C: T.Tensor((8, 8), "int32")):
        with T.Kernel(1, threads=64):
            a = T.alloc_shared((8, 64), dtype)
            b = T.alloc_shared((8, 64), dtype)
            c = T.alloc_fragment((8, 8), "int32")
            T.copy(A, a)
            T.copy(B, b)
            T.clear(c)
            T.gemm(a, b, c, transpose_B=True)
            T.copy(c, C)

    text = passes(Case("dots", lambda: main, frozenset((dtype, "int32"))), arch)
    if dtype == "uint8":
        assert "dot4_u8(&" in text


def rows(dtype: str, stages: int) -> Any:
    """As many iterations as there are rows, and an end that no tile meets."""
    m = T.dynamic("m")

    @T.prim_func
    def main(A: T.Tensor((m, 64), dtype), B: T.Tensor((m, 64), "float32")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((16, 64), dtype)
            for k in T.Pipelined(T.ceildiv(m, 16), num_stages=stages):
                T.copy(A[k * 16, 0], a)
                for i, j in T.Parallel(16, 64):
                    if k * 16 + i < m:
                        B[k * 16 + i, j] = a[i, j]

    return main


@pytest.mark.parametrize("arch", ["gfx942", "gfx90a", "gfx950"])
@pytest.mark.parametrize("stages", [2, 3, 4])
def test_copies_ahead(arch: str, stages: int) -> None:
    """Fewer iterations than stages, and more; loads for iterations that do not exist."""
    for m in (1, 16, 40, 130):
        case = Case("rows", lambda: rows("float16", stages), frozenset(("float16",)), dims={"m": m})
        text = passes(case, arch, ("late", "early", "random"))
        assert "copies_wait" in text


def test_tiles_that_runs_of_lanes_do_not_fill() -> None:
    """A tile of three pieces for two waves: the threads copy it when it is needed."""

    @T.prim_func
    def main(A: T.Tensor((60, 64), "float16"), B: T.Tensor((60, 64), "float16")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((6, 64), "float16")
            for k in T.Pipelined(10, num_stages=3):
                T.copy(A[k * 6, 0], a)
                for i, j in T.Parallel(6, 64):
                    B[k * 6 + i, j] = a[i, j] * 2

    text = passes(Case("three", lambda: main, frozenset(("float16",))), "gfx942", ("late", "early", "random"))
    assert "lds_copy_4" not in text
