"""Values of variables for which an index leaves its buffer: takes the index and what is known, tries the ends of all ranges."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, product

from ..expr import Expr, Var, variables
from .comparisons import Known
from .participants import Threads

SIZES = (1, 2, 16, 17, 1000)  # of what has no range
TRIES = 512


@dataclass(frozen=True)
class Witness:
    """``index`` is not in ``[0, extent)`` where variables have these ``values``."""

    index: int
    extent: int
    values: Mapping[str, int]


def outside(first: Expr, last: Expr, top: Expr, known: Known) -> Witness | None:
    """Values with which ``first`` or ``last`` is not in 0 to ``top``; None if none was found among ends of ranges."""
    for values in islice(_assignments((first, last, top), known), TRIES):
        found = [_value(x, values) for x in (first, last, top)]
        if None in found:
            continue
        low, high, end = (n for n in found if n is not None)
        if low < 0 or high > end:
            shown = {v.name: n for v, n in values.items()}
            return Witness(low if low < 0 else high, end + 1, shown)
    return None


def _value(x: Expr, values: Mapping[Var, int]) -> int | None:
    found = Threads(1, {v: (n,) for v, n in values.items()}).values(x)
    return None if found is None else found[0]


def _assignments(used: tuple[Expr, ...], known: Known) -> Iterator[dict[Var, int]]:
    """Each variable at the first or last value of its range, sizes at small and large ones."""
    order = list(dict.fromkeys(_needed(used, known)))
    for choice in product(*(range(2 if v in known.ranges else len(SIZES)) for v in order)):
        values: dict[Var, int] = {}
        for v, n in zip(order, choice, strict=True):
            found = _value(known.ranges[v][n], values) if v in known.ranges else SIZES[n]
            if found is None or (v in known.ranges and found < (_value(known.ranges[v][0], values) or 0)):
                break
            values[v] = found
        else:
            yield values


def _needed(used: tuple[Expr, ...], known: Known) -> Iterator[Var]:
    """The variables of expressions, those that ranges depend on first."""
    for x in used:
        for v in variables(x):
            if v in known.ranges:
                yield from _needed(known.ranges[v], known)
            yield v
