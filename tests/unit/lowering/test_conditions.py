"""Conditions over runs of iterations, against asking each iteration."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tile_core.dtypes import INT32
from tile_core.expr import Expr, Var, binary, const, substitute, unary
from tile_core.hardware import Target
from tile_core.inference.infer import infer
from tile_core.lowering.simt.conditions import Run, holding, joined
from tile_core.lowering.simt.context import Context
from tile_core.registry import registry
from tile_core.testing.kernels import CASES

V, Q, N = Var("v", INT32, 1), Var("q", INT32, 2), Var("n", INT32, 3)


@pytest.fixture(scope="module")
def context() -> Context:
    program = CASES[0].program
    plan = infer(program, registry().get("cuda").info(Target.parse("cuda:sm_80")))
    return Context(plan, program.launches[0], Var("thread", INT32, 900))


leaves = st.builds(
    lambda op, slope, step, shift, limit: binary(
        op,
        binary("+", binary("+", binary("*", V, slope), binary("*", Q, step)), shift),
        N if limit is None else const(limit),
    ),
    st.sampled_from(("<", "<=", ">", ">=")),
    st.sampled_from((0, 1, 1, -1, 2)),
    st.sampled_from((0, 4, 8)),
    st.integers(-9, 9),
    st.none() | st.integers(-4, 40),
)
trees = st.recursive(
    leaves,
    lambda inner: (
        st.builds(binary, st.sampled_from(("and", "or")), inner, inner)
        | st.builds(lambda x: unary("not", x), inner)
    ),
    max_leaves=4,
)


def value(x: Expr, v: int, q: int, n: int) -> bool:
    out = substitute(x, {V: const(v), Q: const(q), N: const(n)})
    return bool(out.value)  # type: ignore[attr-defined]


@given(trees, st.booleans(), st.sampled_from((2, 4, 8)), st.integers(0, 5), st.integers(0, 48))
def test_everywhere_is_enough(context: Context, c: Expr, side: bool, count: int, q: int, n: int):
    run = Run(context, V, binary("*", Q, count), count)
    told = run.everywhere(c, side)
    if told is not None and value(run.at(told, 0), 0, q, n):
        assert all(value(c, q * count + i, q, n) == side for i in range(count))


@given(trees, st.sampled_from((2, 4, 8)), st.integers(0, 5), st.integers(0, 48))
def test_uniform_conditions_have_one_value(context: Context, c: Expr, count: int, q: int, n: int):
    run = Run(context, V, binary("*", Q, count), count)
    if run.uniform(c):
        assert len({value(c, q * count + i, q, n) for i in range(count)}) == 1


def test_bounds_that_are_multiples_are_uniform(context: Context):
    run = Run(context, V, binary("*", Q, 8), 8)
    assert run.uniform(binary("<", V, 104))
    assert run.uniform(binary("<=", V, 103)) and run.uniform(binary(">=", V, 8))
    assert not run.uniform(binary("<", V, 100)) and not run.uniform(binary("<", V, N))


def test_paths_join():
    a, b = binary("<", V, 3), binary("<", Q, 3)
    top = ((a, True),)
    assert joined([(*top, (b, True)), (*top, (b, False))]) == top
    assert joined([(*top, (b, True)), top]) == top
    assert joined([((a, True), (b, True)), ((a, False),)]) is None
    assert value(holding(((a, True), (b, False))), 1, 5, 0) and not value(
        holding(((a, True), (b, False))), 1, 1, 0
    )
