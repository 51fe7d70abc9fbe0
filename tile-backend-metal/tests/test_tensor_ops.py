"""Facts of Metal 4 tensor products, against the other tables."""

from __future__ import annotations

from tile_backend_metal.atoms import tensor_ops
from tile_backend_metal.compiler.options import VERSIONS
from tile_backend_metal.targets import TARGETS, family
from tile_core.dtypes import dtype


def test_only_the_newest_family_has_units_for_them() -> None:
    have = {info.target.arch for info in TARGETS if tensor_ops.FEATURE in info.features}
    assert have == {max((info.target.arch for info in TARGETS), key=family)}


def test_the_language_is_one_that_a_target_may_name() -> None:
    assert tensor_ops.LANGUAGE in VERSIONS


def test_every_product_of_simdgroup_matrices_is_one_of_them_too() -> None:
    for info in TARGETS:
        for atom in info.atoms:
            assert tensor_ops.multiplies(*atom.types), atom.name


def test_types() -> None:
    assert len(tensor_ops.PRODUCTS) == 26
    assert all(dtype(t) for p in tensor_ops.PRODUCTS for t in (p.a, p.b, p.c))
    assert not tensor_ops.multiplies("float32", "float32", "float16")


def test_no_code_relies_on_them() -> None:
    newest = next(info for info in TARGETS if tensor_ops.FEATURE in info.features)
    assert {a.shape for a in newest.atoms} == {(8, 8, 8)}
