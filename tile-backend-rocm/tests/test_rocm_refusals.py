"""What the backend refuses: one error each, which says what, where and what to do."""

from __future__ import annotations

import pytest
from hip_products import BACKEND, Product, info_of

import tile_core.language as T
from tile_core.errors import KernelError, TileError, Unsupported
from tile_core.testing import stages
from tile_core.testing.kernels import Case, gemm


def refused(case: Case, arch: str, kind: type[TileError], message: str) -> TileError:
    with pytest.raises(kind, match=message) as caught:
        stages.compiled(case, BACKEND, info_of(arch))
    assert caught.value.span is not None
    assert caught.value.help
    return caught.value


@pytest.mark.parametrize("kind", ["float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2"])
def test_small_floats_on_cdna2(kind: str) -> None:
    case = Product("gfx90a", dtype=kind).case
    error = refused(case, "gfx90a", Unsupported, f"A is {kind}, which rocm:gfx90a does not have")
    assert "bfloat16" in error.help and "float8" not in error.help


@pytest.mark.parametrize(
    ("arch", "kind", "other"),
    [
        ("gfx942", "float8_e4m3fn", "float8_e4m3fnuz"),
        ("gfx942", "float8_e5m2", "float8_e5m2fnuz"),
        ("gfx950", "float8_e4m3fnuz", "float8_e4m3fn"),
        ("gfx1201", "float8_e5m2fnuz", "float8_e5m2"),
    ],
)
def test_the_other_kind_of_small_floats(arch: str, kind: str, other: str) -> None:
    """Their bits mean other numbers: nothing is converted behind the user's back."""
    error = refused(Product(arch, dtype=kind).case, arch, Unsupported, f"A is {kind}, which")
    assert error.help == f"its kind of that type is {other}"


def test_a_type_without_code() -> None:
    error = refused(
        Product("gfx950", dtype="float4_e2m1fn").case, "gfx950", Unsupported, "no code for that type"
    )
    assert "float4" not in error.help and "float8_e4m3fn" in error.help


def test_too_much_lds() -> None:
    halves = ("float16", "float32", "float16")
    case = Case("large", lambda: gemm(4096, 4096, 4096, (256, 256, 128), halves), frozenset(halves))
    refused(case, "gfx1100", Unsupported, "needs 131072 bytes of shared memory, rocm:gfx1100 has 65536")


def test_too_many_stages() -> None:
    case = Product("gfx942", block=(256, 256, 64), threads=512, stages=4).case
    refused(case, "gfx942", KernelError, "a ring of 4 needs 128 KB of 64 KB")


def test_too_many_threads() -> None:
    @T.prim_func
    def main(A: T.Tensor((2048,), "float32")):
        with T.Kernel(1, threads=2048):
            for i in T.Parallel(2048):
                A[i] = 1.0

    refused(Case("many", lambda: main, frozenset(("float32",))), "gfx942", TileError, "2048")
