"""Values that lanes of a subgroup pass to each other: takes a value of any type, gives the calls and what arrives."""

from __future__ import annotations

from collections.abc import Callable

from ...dtypes import DType, dtype
from ...expr import Expr, Var, binary, bitcast, cast, const
from ...program import Stmt
from .context import Context
from .instructions import VectorMoves

Call = Callable[[Expr, Var], Stmt]


def swapped(
    context: Context, moves: VectorMoves, value: Expr, distance: int
) -> tuple[tuple[Stmt, ...], Expr]:
    """The value of the lane whose number differs by the bits of ``distance``."""
    return _passed(context, value, lambda word, result: moves.swap(word, distance, result))


def from_below(
    context: Context, moves: VectorMoves, value: Expr, distance: int
) -> tuple[tuple[Stmt, ...], Expr]:
    """The value of the lane ``distance`` before this one."""
    return _passed(context, value, lambda word, result: moves.from_below(word, distance, result))


def of_lane(context: Context, moves: VectorMoves, value: Expr, lane: Expr) -> tuple[tuple[Stmt, ...], Expr]:
    """The value of lane number ``lane``."""
    return _passed(context, value, lambda word, result: moves.of_lane(word, lane, result))


def _passed(context: Context, value: Expr, call: Call) -> tuple[tuple[Stmt, ...], Expr]:
    word = as_word(value)
    got = Var("got", word.dtype, context.unique("got"))
    return (call(word, got),), from_word(got, value.dtype)


def as_word(value: Expr) -> Expr:
    """The bits of a value as a number of 32 or 64 bits; float32 stays."""
    t = value.dtype
    if t.name == "float32":
        return value
    if t.is_bool:
        return cast(value, "uint32")
    bits = bitcast(value, f"uint{t.bits}")
    return bits if t.bits >= 32 else cast(bits, "uint32")


def from_word(word: Expr, type: DType) -> Expr:
    """The value again."""
    if type.name == "float32":
        return word
    if type.is_bool:
        return binary("!=", word, const(0, word.dtype))
    return bitcast(cast(word, dtype(f"uint{type.bits}")), type)
