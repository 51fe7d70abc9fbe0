"""Random expressions give the same bits on the cpu target as in the interpreter."""

from __future__ import annotations

import random

import numpy as np
import pytest
from cpu_programs import at, build, elements, launch, program, tensor, var

from tile_core.dtypes import ALL, dtype
from tile_core.expr import Binary, Expr, Unary, bitcast, call, cast, const, select
from tile_core.interpreter.machine import Machine
from tile_core.program import Parallel, Store

N = 97
TYPES = (
    "float32",
    "float16",
    "bfloat16",
    "float64",
    "float8_e4m3fn",
    "float8_e5m2",
    "int32",
    "int8",
    "uint8",
    "int64",
)
# no division: the sign of a zero that min and max give is free, and would show as that of an infinity
EXACT = ("abs", "floor", "ceil", "round", "trunc", "sqrt", "ieee_add", "ieee_mul")


class Grower:
    """Grows an expression of a wanted type from the elements of some tensors."""

    def __init__(self, seed: int, tensors, index) -> None:
        self.pick = random.Random(seed)
        self.tensors, self.index = tensors, index

    def grow(self, type: str, depth: int) -> Expr:
        if depth == 0:
            return self.leaf(type)
        if type == "bool":
            other = self.pick.choice(TYPES)
            op = self.pick.choice(("<", "<=", ">", ">=", "==", "!="))
            return Binary(op, self.grow(other, depth - 1), self.grow(other, depth - 1))
        makers = [self.operation, self.operation, self.choice, self.conversion]
        makers += [self.function, self.negation] if dtype(type).is_float else [self.bits, self.negation]
        return self.pick.choice(makers)(type, depth - 1)

    def leaf(self, type: str) -> Expr:
        known = [t for t in self.tensors if t.dtype.name == type]
        if known and self.pick.random() < 0.8:
            return at(self.pick.choice(known), self.index)
        value = self.pick.choice((0, 1, 2, 3, 5, 7))
        return const(value != 0, "bool") if type == "bool" else const(value, type)

    def operation(self, type: str, depth: int) -> Expr:
        op = self.pick.choice(("+", "-", "*", "min", "max"))
        return Binary(op, self.grow(type, depth), self.grow(type, depth))

    def bits(self, type: str, depth: int) -> Expr:
        op = self.pick.choice(("&", "|", "^", "//", "%", "<<", ">>"))
        a = self.grow(type, depth)
        if op in ("//", "%"):
            return Binary(op, a, const(self.pick.choice((1, 2, 3, 7, 16)), type))
        if op in ("<<", ">>"):
            return Binary(op, a, const(self.pick.randrange(dtype(type).bits), type))
        return Binary(op, a, self.grow(type, depth))

    def negation(self, type: str, depth: int) -> Expr:
        return Unary("-", self.grow(type, depth))

    def choice(self, type: str, depth: int) -> Expr:
        return select(self.grow("bool", depth), self.grow(type, depth), self.grow(type, depth))

    def conversion(self, type: str, depth: int) -> Expr:
        if dtype(type).is_float:
            return cast(self.grow(self.pick.choice(TYPES), depth), type)
        other = self.pick.choice([t for t in TYPES if not dtype(t).is_float])
        if dtype(other).bits == dtype(type).bits:
            return bitcast(self.grow(other, depth), type)
        return cast(self.grow(other, depth), type)

    def function(self, type: str, depth: int) -> Expr:
        name = self.pick.choice(EXACT)
        count = 2 if name in ("ieee_add", "ieee_mul") else 1
        return call(name, *(self.grow(type, depth) for _ in range(count)))


def data(rng, type: str) -> np.ndarray:
    if dtype(type).is_float:
        x = rng.standard_normal(N) * 8
        x[:6] = [0, -0.0, np.inf, -np.inf, np.nan, 1]
        with np.errstate(all="ignore"):
            return x.astype(np.float32).astype(elements(type))
    return rng.integers(-100 if dtype(type).kind == "int" else 0, 100, N).astype(elements(type))


@pytest.mark.parametrize("seed", range(40))
def test_expression(seed):
    rng = np.random.default_rng(seed)
    index = var("i")
    inputs = [tensor(f"x{k}", (N,), t) for k, t in enumerate(TYPES)]
    grower = Grower(seed, inputs, index)
    outputs = [tensor(f"y{k}", (N,), t) for k, t in enumerate(TYPES)]
    stores = tuple(Store(y, (index,), grower.grow(y.dtype.name, 4)) for y in outputs)
    made = program([*inputs, *outputs], launch([Parallel((index,), (N,), stores)]))
    given = [data(rng, t) for t in TYPES]
    ours = [np.zeros(N, elements(t)) for t in TYPES]
    wanted = [np.zeros(N, elements(t)) for t in TYPES]
    build(made)(*given, *ours)
    with np.errstate(all="ignore"):
        Machine(made, [*given, *wanted]).run()
    for a, b, store in zip(ours, wanted, stores, strict=True):
        assert same(a, b), (store.value, np.flatnonzero(a != b)[:5])


def same(a: np.ndarray, b: np.ndarray) -> bool:
    """Equal bits; any NaN equals any other; zeros of both signs are equal (the sign of min and max is free)."""
    if ALL[a.dtype.name].is_integer:
        return bool(np.array_equal(a, b))
    x, y = a.astype(np.float64), b.astype(np.float64)
    return bool(np.all((x == y) | (np.isnan(x) & np.isnan(y))))
