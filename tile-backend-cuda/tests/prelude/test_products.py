"""Generated products of any shape, type, orientation and number of threads under the emulator, against the interpreter."""

from __future__ import annotations

from typing import Any

import pytest
from generated import Product, findings
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

pytest.importorskip("tile_backend_cuda.codegen")

TYPES = ("half", "half_sums", "bfloat", "rounded", "signed", "unsigned", "double", "e4m3", "e5m2")
ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90a", "sm_120a")
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
        draw(st.sampled_from(TYPES)),
        draw(st.sampled_from(ARCHITECTURES)),
        (
            draw(st.sampled_from((m, 2 * m, m + 3))),
            draw(st.sampled_from((n, 2 * n, n + 8, n + 1))),
            draw(st.sampled_from((k, 3 * k, 2 * k + 1, 5 * k, 4 * k + 8))),
        ),
        block,
        threads=draw(st.sampled_from((32, 64, 96, 128, 256))),
        stages=draw(st.sampled_from((0, 1, 2, 2, 3))),
        transpose_a=draw(st.booleans()),
        transpose_b=draw(st.booleans()),
    )


@SETTINGS
@given(product=products(), mode=MODES)
@example(product=Product("half", "sm_80", (48, 104, 33), (48, 104, 33)), mode="late")
@example(
    product=Product("half", "sm_80", (48, 104, 99), (48, 104, 33), transpose_a=True, stages=3), mode="late"
)
@example(product=Product("half", "sm_75", (48, 104, 33), (48, 104, 33), transpose_b=True), mode="early")
@example(product=Product("signed", "sm_80", (48, 104, 66), (48, 104, 66), transpose_b=True), mode="random")
@example(product=Product("rounded", "sm_89", (48, 104, 36), (48, 104, 36)), mode="late")
@example(product=Product("half", "sm_80", (16, 16, 96), (16, 16, 16), threads=256, stages=4), mode="late")
def test_products(product: Product, mode: str, emulator: None) -> None:
    assert not findings(product, mode)


PLACES = ("shared", "fragment", "slot", "window", "part")


@st.composite
def operands(draw: st.DrawFn) -> Product:
    extents = tuple(draw(st.sampled_from((8, 16, 24, 32, 33, 17, 40, 48, 64))) for _ in range(3))
    places: Any = tuple(draw(st.sampled_from(PLACES)) for _ in range(3))
    return Product(
        draw(st.sampled_from(TYPES)),
        draw(st.sampled_from(ARCHITECTURES)),
        extents,
        extents,
        threads=draw(st.sampled_from((32, 64, 96, 128))),
        transpose_a=draw(st.booleans()),
        transpose_b=draw(st.booleans()),
        places=places,
        clear=draw(st.booleans()),
    )


@SETTINGS
@given(product=operands(), mode=MODES)
@example(
    product=Product("half", "sm_80", (32, 32, 33), (32, 32, 33), places=("fragment", "slot", "shared")),
    mode="late",
)
@example(
    product=Product("rounded", "sm_80", (32, 32, 32), (32, 32, 32), places=("fragment",) * 3), mode="late"
)
@example(
    product=Product("signed", "sm_75", (16, 64, 16), (16, 64, 16), places=("fragment", "slot", "part")),
    mode="late",
)
def test_operands_anywhere(product: Product, mode: str, emulator: None) -> None:
    assert not findings(product, mode)
