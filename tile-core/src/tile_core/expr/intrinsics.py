"""The scalar functions of the language, as data: how many arguments, which types they take, what they give."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Intrinsic:
    """``takes``: ``float``, ``integer``, ``number`` or ``any``. ``gives``: ``same`` or a type's name.

    A ``float`` function converts integer arguments to float32. ``fast``: an approximation is allowed.
    """

    name: str
    arity: int
    takes: str = "float"
    gives: str = "same"
    fast: bool = False


def _rows(
    names: str, arity: int, takes: str = "float", gives: str = "same", fast: bool = False
) -> list[Intrinsic]:
    return [Intrinsic(n, arity, takes, gives, fast) for n in names.split()]


INTRINSICS: dict[str, Intrinsic] = {
    i.name: i
    for i in (
        *_rows("exp exp2 exp10 log log2 log10 sqrt rsqrt sin cos tan tanh sigmoid erf", 1),
        *_rows("floor ceil round trunc", 1),
        *_rows("abs", 1, "number"),
        *_rows("pow", 2, "number"),
        *_rows("fma", 3),
        *_rows("isnan isinf isfinite", 1, "float", "bool"),
        *_rows("popcount clz", 1, "integer"),
        *_rows("__exp __exp2 __exp10 __log __log2 __log10 __sin __cos __tan __rcp", 1, fast=True),
        # explicit IEEE rounding to nearest even, never contracted into an fma
        *_rows("ieee_add ieee_sub ieee_mul ieee_div", 2),
        *_rows("ieee_sqrt ieee_rcp ieee_rsqrt", 1),
    )
}
