"""How types are stored and held."""

from __future__ import annotations

import pytest

from tile_core.dtypes import ALL
from tile_core.errors import Unsupported
from tile_core.lowering import numbers

ROWS = [
    ("bool", "uint8", "bool"),
    ("int4", "int8", "int8"),
    ("uint2", "uint8", "uint8"),
    ("int32", "int32", "int32"),
    ("float16", "uint16", "float32"),
    ("bfloat16", "uint16", "float32"),
    ("float8_e4m3fn", "uint8", "float32"),
    ("float6_e2m3fn", "uint8", "float32"),
    ("float4_e2m1fn", "uint8", "float32"),
    ("tfloat32", "float32", "float32"),
    ("float64", "float64", "float64"),
]


@pytest.mark.parametrize(("name", "stored", "held"), ROWS)
def test_types(name, stored, held):
    assert numbers.storage(ALL[name]) == stored
    assert numbers.held(ALL[name]) == held


def test_constants_are_rounded_to_their_type():
    assert float(numbers.constant(0.1, ALL["bfloat16"]).value) == 0.10009765625
    assert float(numbers.constant(0.1, ALL["float16"]).value) == 0.0999755859375


def test_vectors_are_refused():
    with pytest.raises(Unsupported):
        numbers.storage(ALL["float16"].vector(2))
