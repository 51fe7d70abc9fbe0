"""Generated products of any shape, type, orientation and number of threads under the emulator, against numpy."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from products import Product, compiled, faults

from tile_core.errors import KernelError, Unsupported

pytest.importorskip("tile_backend_cuda.codegen")

HALF, ROUNDED, SIGNED = ("float16", "float32", "float32"), ("float32",) * 3, ("int8", "int32", "int32")
TYPES = (
    *(HALF, ROUNDED, SIGNED, ("float16",) * 3, ("float64",) * 3, ("uint8", "int32", "int32")),
    *((operand, "float32", "float32") for operand in ("bfloat16", "float8_e4m3fn", "float8_e5m2")),
)
ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a")
SIDES = (5, 8, 16, 17, 24, 32, 33, 40, 48, 64, 96, 104)
DEPTHS = (5, 8, 12, 16, 20, 32, 33, 48, 64)
MODES = st.sampled_from(("late", "early", "random"))
SETTINGS = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@st.composite
def products(draw: st.DrawFn) -> Product:
    block = (draw(st.sampled_from(SIDES)), draw(st.sampled_from(SIDES)), draw(st.sampled_from(DEPTHS)))
    m, n, k = block
    return Product(
        draw(st.sampled_from((m, 2 * m, m + 3))),
        draw(st.sampled_from((n, 2 * n, n + 8, n + 1))),
        draw(st.sampled_from((k, 3 * k, 2 * k + 1, 5 * k, 4 * k + 8))),
        block,
        *draw(st.sampled_from(TYPES)),
        a_t=draw(st.booleans()),
        b_t=draw(st.booleans()),
        stages=draw(st.sampled_from((0, 1, 2, 2, 3))),
        threads=draw(st.sampled_from((32, 64, 96, 128, 256))),
        arch=draw(st.sampled_from(ARCHITECTURES)),
    )


def findings(product: Product, mode: str) -> str:
    """Faults of a product; none if its block or its rings are too large."""
    try:
        _, source = compiled(product)
    except Unsupported:
        return ""
    except KernelError as error:
        if "num_stages" not in str(error):
            raise
        return ""
    return faults(product, source, mode)


def one(
    arch: str, types: tuple[str, str, str], m: int, n: int, k: int, *, depth: int = 0, **how: Any
) -> Product:
    """A block alone, along k in steps of ``depth``."""
    how = {"threads": 128, "stages": 2, "b_t": False, "arch": arch, **how}
    return Product(m, n, k, (m, n, depth or k), *types, **how)


@SETTINGS
@given(product=products(), mode=MODES)
@example(product=one("sm_80", HALF, 48, 104, 33), mode="late")
@example(product=one("sm_80", HALF, 48, 104, 99, depth=33, a_t=True, stages=3), mode="late")
@example(product=one("sm_75", HALF, 48, 104, 33, b_t=True), mode="early")
@example(product=one("sm_80", SIGNED, 48, 104, 66, b_t=True), mode="random")
@example(product=one("sm_89", ROUNDED, 48, 104, 36), mode="late")
@example(product=one("sm_80", HALF, 16, 16, 96, depth=16, threads=256, stages=4), mode="late")
@example(product=one("sm_100a", HALF, 256, 48, 33, threads=256, b_t=True), mode="random")
@example(product=one("sm_100a", SIGNED, 128, 64, 160, depth=32, b_t=True, stages=3), mode="late")
@example(product=one("sm_100a", ROUNDED, 128, 96, 64, depth=16, threads=256, b_t=True), mode="early")
def test_products(product: Product, mode: str, emulator: None) -> None:
    assert not findings(product, mode)


PLACES = ("shared", "fragment", "slot", "window", "part")


@st.composite
def operands(draw: st.DrawFn) -> Product:
    m, n, k = (draw(st.sampled_from((8, 16, 24, 32, 33, 17, 40, 48, 64))) for _ in range(3))
    places: Any = tuple(draw(st.sampled_from(PLACES)) for _ in range(3))
    return one(
        draw(st.sampled_from(ARCHITECTURES)),
        draw(st.sampled_from(TYPES)),
        *(m, n, k),
        threads=draw(st.sampled_from((32, 64, 96, 128))),
        a_t=draw(st.booleans()),
        b_t=draw(st.booleans()),
        places=places,
        clear=draw(st.booleans()),
    )


@SETTINGS
@given(product=operands(), mode=MODES)
@example(product=one("sm_80", HALF, 32, 32, 33, places=("fragment", "slot", "shared")), mode="late")
@example(product=one("sm_80", ROUNDED, 32, 32, 32, places=("fragment",) * 3), mode="late")
@example(product=one("sm_75", SIGNED, 16, 64, 16, places=("fragment", "slot", "part")), mode="late")
def test_operands_anywhere(product: Product, mode: str, emulator: None) -> None:
    assert not findings(product, mode)
