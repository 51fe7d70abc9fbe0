"""Accesses that are proved inside, need a guard, or are refused; and ranges against enumeration."""

from __future__ import annotations

from itertools import product

import handmade as h
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tile_core.dtypes import INT32
from tile_core.errors import KernelError
from tile_core.expr import Expr, Select, Var, binary, cast, ceildiv, const
from tile_core.expr.intervals import interval
from tile_core.program import If
from tile_core.verification.bounds import Status, prove_in_bounds, refuse_violations
from tile_core.verification.comparisons import Known, never_above


def statuses(p, buffer: str) -> list[str]:
    return [o.status.value for o in prove_in_bounds(p) if o.buffer.name == buffer]


@pytest.mark.parametrize(
    "make", [h.gemm, h.split_k, h.softmax, h.layer_norm, h.transpose, h.rotation, h.table_lookup]
)
def test_whole_tiles_are_proved(make) -> None:
    assert {o.status for o in prove_in_bounds(make())} == {Status.PROVED}


def test_a_ragged_tail_needs_a_guard() -> None:
    found = [o for o in prove_in_bounds(h.gemm(size=1000)) if o.status is not Status.PROVED]
    assert {o.buffer.name for o in found} == {"A", "B", "C"} and {o.status for o in found} == {
        Status.GUARD_NEEDED
    }
    assert all(o.span is not None and "not always in 0 to 999" in o.reason for o in found)


def test_symbolic_loop_over_a_symbolic_tensor_is_proved() -> None:
    n = Var("N", INT32)
    b = h.Builder("rows")
    b.blocks(1)
    x, t = b.tensor("X", n, 64), b.tile("t", 64)
    b.loop(n, lambda i: b.copy(h.part(x, i, slice(None)), t), kind="serial")
    b.loop(n, lambda i: b.copy(h.part(x, i + 1, slice(None)), t), kind="serial")
    assert statuses(b.program(), "X") == ["proved", "proved", "guard_needed", "proved"]


def test_conditions_prove() -> None:
    n = Var("N", INT32)
    b = h.Builder("guarded")
    (bx,) = b.blocks(ceildiv(n, 128))
    x = b.tensor("X", n, type="float32")
    b.parallel(
        (128,),
        lambda i: If(
            bx * 128 + i < n, (h.store(x, (bx * 128 + i,), 0.0),), (h.store(x, (bx * 128 + i - n,), 1.0),)
        ),
    )
    b.parallel(
        (128,), lambda i: h.store(x, (i % 2,), Select(bx * 128 + i < n, h.at(x, bx * 128 + i), const(0.0)))
    )
    assert statuses(b.program(), "X") == ["proved", "guard_needed", "proved", "guard_needed"]


def test_constant_ranges_outside_are_refused() -> None:
    b = h.Builder("outside")
    b.blocks(1)
    t = b.shared("t", 64, 64)
    b.fill(h.part(t, slice(32, 96), slice(None)), 0)
    with pytest.raises(KernelError, match="dimension 0 of t is left: 32 to 95 is not always in 0 to 63") as e:
        refuse_violations(b.program())
    assert e.value.span is not None


def test_tensors_may_be_copied_beyond_their_end_but_not_from_outside() -> None:
    b = h.Builder("tail")
    b.blocks(1)
    x, t = b.tensor("X", 100), b.tile("t", 128)
    b.copy(h.part(x, 0, size=(128,)), t)
    assert statuses(b.program(), "X") == ["guard_needed"]
    b.copy(h.part(x, 100, size=(128,)), t)
    assert statuses(b.program(), "X") == ["guard_needed", "violated"]


VARS = Var("i", INT32, 1), Var("j", INT32, 2)
RANGES = {VARS[0]: range(5), VARS[1]: range(2, 6)}
leaves = st.one_of(st.sampled_from(VARS), st.integers(-4, 9).map(const))
trees = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(binary, st.sampled_from(["+", "-", "*", "min", "max"]), inner, inner),
        st.builds(
            binary, st.sampled_from(["//", "%", "truncdiv", "truncmod"]), inner, st.integers(1, 5).map(const)
        ),
        st.builds(cast, inner, st.sampled_from(["int4", "uint4", "int8", "uint8", "uint32", "int64"])),
    ),
    max_leaves=6,
)


def value(x: Expr, at: dict) -> int:
    from tile_core.expr import Const, substitute

    out = substitute(x, {v: const(n) for v, n in at.items()})
    assert isinstance(out, Const)
    return int(out.value)


@settings(max_examples=300, deadline=None)
@given(trees, st.integers(-10, 30))
def test_intervals_hold(x: Expr, limit: int) -> None:
    known = Known({v: (const(r[0]), const(r[-1])) for v, r in RANGES.items()})
    seen = [value(x, dict(zip(RANGES, at, strict=True))) for at in product(*RANGES.values())]
    got = interval(x, known.of)
    assert got.low is None or got.low <= min(seen)
    assert got.high is None or got.high >= max(seen)
    assert not never_above(x, const(limit), known) or max(seen) <= limit
    assert not never_above(const(limit), x, known) or limit <= min(seen)
