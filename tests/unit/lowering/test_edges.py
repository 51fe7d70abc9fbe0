"""From which iteration on a condition holds, against asking each iteration."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tile_core as tile
import tile_core.language as T
from tile_core.dtypes import INT32
from tile_core.expr import Const, Expr, Var, binary, const, substitute
from tile_core.expr.intervals import Interval
from tile_core.expr.simplify import simplify
from tile_core.hardware import Target
from tile_core.lowering.simt.context import Context
from tile_core.lowering.simt.edges import holds_from

K, OTHER = Var("k", INT32, 1), Var("n", INT32, 2)


@pytest.fixture(scope="module")
def context() -> Context:
    @tile.jit
    def nothing(n):
        @T.prim_func
        def kernel(A: T.Tensor((n,), "float32")):
            with T.Kernel(1, threads=32):
                T.fill(A[0:n], 0)

        return kernel

    plan = nothing(32).for_target(Target.parse("cuda:sm_90a")).plan
    return Context(plan, plan.program.launches[0], Var("thread", INT32, 900))


def value(x: Expr, **at: int) -> int | bool:
    names = {K.name: K, OTHER.name: OTHER}
    found = simplify(substitute(x, {names[n]: const(v) for n, v in at.items()}), lambda _: Interval())
    assert isinstance(found, Const)
    return found.value


SIDES = st.tuples(st.integers(1, 9), st.integers(-9, 9), st.integers(-300, 300))


@st.composite
def conditions(draw: st.DrawFn) -> Expr:
    slope, other, constant = draw(SIDES)
    rising = binary("+", binary("+", binary("*", K, slope), binary("*", OTHER, other)), constant)
    limit = draw(st.integers(-200, 200))
    op, flipped = draw(st.sampled_from([(">", "<"), (">=", "<=")]))
    x = binary(op, rising, limit) if draw(st.booleans()) else binary(flipped, const(limit), rising)
    if draw(st.booleans()):
        more = draw(conditions())
        x = binary(draw(st.sampled_from(["or", "and"])), x, more)
    return x


@given(conditions(), st.integers(0, 12))
def test_against_each_iteration(context: Context, condition: Expr, n: int) -> None:
    first = holds_from(context, condition, K)
    assert first is not None
    begin = value(first, n=n) if not isinstance(first, Const) else first.value
    for k in range(-60, 60):
        assert bool(value(condition, k=k, n=n)) == (k >= begin)


def test_what_falls_again_has_no_edge(context: Context) -> None:
    assert holds_from(context, binary("<", K, 5), K) is None
    assert holds_from(context, binary("==", K, 5), K) is None
    both = binary("and", binary(">", K, 2), binary("<", K, 5))
    assert holds_from(context, both, K) is None
