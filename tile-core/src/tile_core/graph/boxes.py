"""Which elements of a buffer an access touches, as a box: takes index expressions, decides whether two boxes meet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..expr import Buffer, Expr, Var, reads, variables
from ..expr.affine import Linear, linear
from ..program import Region


def steady(x: Expr) -> Linear | None:
    """``x`` as a sum; None if it reads memory, since the value may change between two looks at it."""
    return None if reads(x) else linear(x)


def _depends(form: Linear, vars: frozenset[Var]) -> bool:
    """Whether any of ``vars`` occurs."""
    return any(t in vars if isinstance(t, Var) else any(v in vars for v in variables(t)) for t in form.terms)


@dataclass(frozen=True, slots=True)
class Range:
    """``[low, low + extent)`` along one dimension; None where it is not known."""

    low: Linear | None
    extent: int | None


ANY = Range(None, None)


@dataclass(frozen=True, slots=True)
class Box:
    """A part of ``buffer`` (which may be a view). ``whole``: all of it. ``exact``: every element of the box is touched."""

    buffer: Buffer
    ranges: tuple[Range, ...] = ()
    whole: bool = False
    exact: bool = True


def region_box(r: Region) -> Box:
    """The box of a region of a tile op."""
    if r.whole:
        return Box(r.buffer, whole=True)
    ranges = tuple(
        Range(steady(s), e if isinstance(e, int) else None) for s, e in zip(r.start, r.extent, strict=True)
    )
    return Box(r.buffer, ranges, _is_whole(ranges, r.buffer))


def element_box(
    buffer: Buffer, indices: Sequence[Expr], loops: Mapping[Var, int | Expr | None], exact: bool
) -> Box:
    """The box of ``buffer[indices]`` over all values of ``loops`` (variable -> extent, or None)."""
    if not indices:
        return Box(buffer, whole=True, exact=exact)
    used: list[Var] = []
    ranges: list[Range] = []
    for i in indices:
        found, dense = _swept(steady(i), loops, used)
        exact = exact and dense
        ranges.append(found)
    exact = exact and len(set(used)) == len(used)
    return Box(buffer, tuple(ranges), exact and _is_whole(ranges, buffer), exact)


def _swept(
    form: Linear | None, loops: Mapping[Var, int | Expr | None], used: list[Var]
) -> tuple[Range, bool]:
    """The range that an index runs over, and whether it leaves no gaps; loop variables it uses go to ``used``."""
    if form is None:
        return ANY, False
    terms: dict[Expr, int] = {}
    low, extent, dense = form.constant, 1, True
    for term, factor in form.terms.items():
        if not isinstance(term, Var) or term not in loops:
            if any(v in loops for v in variables(term)):
                return ANY, False
            terms[term] = factor
            continue
        count = loops[term]
        if not isinstance(count, int):
            return ANY, False
        used.append(term)
        dense = dense and abs(factor) == 1 and extent == 1
        low += min(0, factor * (count - 1))
        extent += abs(factor) * (count - 1)
    return Range(Linear(low, terms), extent), dense


def _is_whole(ranges: Sequence[Range], buffer: Buffer) -> bool:
    return all(
        r.low is not None and not r.low.terms and r.low.constant == 0 and r.extent == n
        for r, n in zip(ranges, buffer.shape, strict=True)
    )


@dataclass(frozen=True, slots=True)
class Turn:
    """One iteration of a loop against a later one: ``var`` moves on by ``step``, ``changing`` by any amount."""

    var: Var | None
    step: int
    changing: frozenset[Var]

    @property
    def everything(self) -> frozenset[Var]:
        """All variables that may differ between the two iterations."""
        return self.changing if self.var is None else self.changing | {self.var}


def meet(a: Box, b: Box, turn: Turn | None = None) -> bool:
    """Whether both may touch one element: in the same iteration, or ``a`` in an earlier one than ``b`` when ``turn``."""
    if a.whole or b.whole or (a.buffer is not b.buffer and a.buffer != b.buffer):
        return True  # two views of one memory: their shapes do not compare
    return all(_meet(x, y, turn) for x, y in zip(a.ranges, b.ranges, strict=True))


def _meet(a: Range, b: Range, turn: Turn | None) -> bool:
    if a.low is None or b.low is None or a.extent is None or b.extent is None:
        return True
    distance = b.low.constant - a.low.constant
    x, y = a.low.terms, b.low.terms
    if not x and not y:
        return -b.extent < distance < a.extent
    if turn is not None:
        if x != y or _depends(a.low, turn.changing):
            return True
        move = x.get(turn.var, 0) * turn.step if turn.var is not None else 0
        if move:
            ahead, behind = (a.extent, b.extent) if move > 0 else (b.extent, a.extent)
            distance, move = (distance, move) if move > 0 else (-distance, -move)
            turns = max(1, (-behind - distance) // move + 1)  # the first that brings b past the start of a
            return distance + move * turns < ahead
    return x != y or -b.extent < distance < a.extent


def covers(a: Box, b: Box, changing: frozenset[Var] = frozenset()) -> bool:
    """Whether writing ``a`` surely overwrites all of ``b``; variables in ``changing`` have other values by then."""
    if not a.exact:
        return False
    if a.whole and (a.buffer.source is None or a.buffer == b.buffer):
        return True
    if a.buffer != b.buffer or b.whole:
        return False
    return all(_covers(x, y, changing) for x, y in zip(a.ranges, b.ranges, strict=True))


def _covers(a: Range, b: Range, changing: frozenset[Var]) -> bool:
    if a.low is None or b.low is None or a.extent is None or b.extent is None or a.low.terms != b.low.terms:
        return False
    if changing and a.low.terms and _depends(a.low, changing):
        return False
    ahead = b.low.constant - a.low.constant
    return ahead >= 0 and ahead + b.extent <= a.extent
