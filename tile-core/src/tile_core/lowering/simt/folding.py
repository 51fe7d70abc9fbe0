"""Combine the elements of a fragment along some dimensions: in registers, by shuffles, and in shared memory between subgroups."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import gcd

from ...expr import Buffer, Expr, Load, Var, binary, const, select, variables
from ...layout.algebra import project
from ...layout.layout import Axis, Iter, Layout, grouped
from ...layout.partition import combining
from ...program import For, If, Stmt, Store
from ...span import Span
from .context import Context, coordinate, linear_index
from .exchange import swapped
from .nest import Iterations, conjunction, iterations, low_digit, thread_digit


@dataclass(frozen=True)
class Fold:
    """How to combine. ``value``: an element (by its index) in the type of the partial results; ``join`` two of those.

    ``start``: what changes nothing when it is joined. ``everyone``: threads that hold no element get the result, too.
    """

    value: Callable[[tuple[Expr, ...]], Expr]
    join: Callable[[Expr, Expr], Expr]
    start: Expr
    everyone: bool = False


def folded(
    context: Context,
    layout: Layout,
    dims: Sequence[int],
    parts: Buffer,
    fold: Fold,
    span: Span | None,
    apart: bool = False,
) -> tuple[Stmt, ...]:
    """Statements that combine along ``dims`` into ``parts``, a private array of each thread.

    ``layout``: of the source, with digits of its own for each dimension. The results are laid out as it is over the other
    dimensions. ``apart``: each thread has only what it holds itself; ``together`` is for later.
    """
    step = _step(context, layout, dims, parts, fold, span)
    return tuple(step.registers()) if apart else (*step.registers(), *step.across(dims))


def together(
    context: Context, layout: Layout, dims: Sequence[int], parts: Buffer, fold: Fold
) -> Iterator[Stmt]:
    """Statements that combine what each thread has in ``parts`` along ``dims``."""
    yield from _step(context, layout, dims, parts, fold, None).across(dims)


def parts_apart(
    context: Context, layout: Layout, dims: Sequence[int], parts: Buffer, fold: Fold
) -> Iterator[Stmt]:
    """Statements that leave a combined result with one of the threads that share it, and nothing with the others."""
    step = _step(context, layout, dims, parts, fold, None)
    others = [binary("!=", thread_digit(context, layout, it), 0) for it in step.digits(dims)]
    for other in others:
        k = context.var("k", step.count)
        kept = select(other, fold.start, Load(parts, (k,)), lazy=False)
        yield step.each(k, (Store(parts, (k,), context.simple(kept)),))


def _step(
    context: Context,
    layout: Layout,
    dims: Sequence[int],
    parts: Buffer,
    fold: Fold,
    span: Span | None,
) -> _Step:
    kept = [d for d in range(len(layout.shape)) if d not in dims]
    result = project(layout, kept)
    assert result is not None, "the caller asks for a layout that can be projected"
    return _Step(context, layout, tuple(kept), result, parts, fold, span)


@dataclass(frozen=True)
class _Step:
    context: Context
    layout: Layout
    kept: tuple[int, ...]
    result: Layout
    parts: Buffer
    fold: Fold
    span: Span | None

    def across(self, dims: Sequence[int]) -> Iterator[Stmt]:
        """Threads combine what each has."""
        digits = self.digits(dims)
        lanes = self.lanes()
        plan = combining(digits, lanes)
        if plan.shuffles:
            yield from self.shuffles(plan.shuffles)
        upper = [_upper(it, lanes) for it in digits]
        apart = [it for it in upper if it.extent > 1]
        idle = self.fold.everyone and self.used < self.context.threads
        if apart or idle:
            lower = [_lower(it, lanes) for it in digits]
            yield from self.through_memory(apart, [it for it in lower if it.extent > 1])

    @property
    def used(self) -> int:
        return self.layout.cosize(Axis.THREAD)

    def digits(self, dims: Sequence[int]) -> list[Iter]:
        """The thread digits that count the elements of one result."""
        groups = grouped(self.layout)
        assert groups is not None
        return [it for d in dims for it in groups[d] if it.axis is Axis.THREAD and it.extent > 1]

    def lanes(self) -> int:
        """How many neighbouring threads exchange values: of a subgroup, so that every thread has a partner in the block."""
        moves = self.context.instructions.vectors
        if moves is None or self.layout.base(Axis.THREAD) % moves.subgroup:
            return 1
        return gcd(self.context.threads, moves.subgroup)

    def registers(self) -> Iterator[Stmt]:
        """Each thread combines its own elements."""
        k = self.context.var("k", self.count)
        yield self.each(k, (Store(self.parts, (k,), self.fold.start, span=self.span),))
        mine = iterations(self.context, self.layout, self.layout.shape)
        at = (coordinate(self.result, self.kept_index(mine), Axis.REGISTER, self.context),)
        old = Load(self.parts, at)
        step = Store(self.parts, at, self.fold.join(old, self.fold.value(mine.index)), span=self.span)
        yield from self.kept_outside(mine).around((step,), self.span)

    @property
    def count(self) -> int:
        return self.result.cosize(Axis.REGISTER)

    def each(self, k: Var, body: tuple[Stmt, ...]) -> Stmt:
        return For(k, const(0), self.count, body, "unroll", span=self.span)

    def kept_index(self, mine: Iterations) -> tuple[Expr, ...]:
        return tuple(mine.index[d] for d in self.kept)

    def kept_outside(self, mine: Iterations) -> Iterations:
        """The same nest with the loops over results outermost, so that the chains of results are independent."""
        outer = {v for i in self.kept_index(mine) for v in variables(i)}
        loops = sorted(mine.loops, key=lambda loop: loop[0] in outer)
        return Iterations(mine.index, tuple(loops), mine.guards, mine.first)

    def shuffles(self, masks: Sequence[int]) -> Iterator[Stmt]:
        moves = self.context.instructions.vectors
        assert moves is not None
        k = self.context.var("k", self.count)
        body: list[Stmt] = []
        for mask in masks:
            mine = Load(self.parts, (k,))
            got, other = swapped(self.context, moves, mine, mask)
            body += [*got, Store(self.parts, (k,), self.fold.join(mine, other), span=self.span)]
        yield self.each(k, tuple(body))

    def through_memory(self, apart: Sequence[Iter], together: Sequence[Iter]) -> Iterator[Stmt]:
        """One of the threads that hold a partial result hands it out; all that want the result read all parts of it."""
        shape = self.result.shape
        number = 1
        for it in apart:
            number *= it.extent
        lines = 1
        for n in shape:
            lines *= n
        scratch = self.context.scratch(f"{self.parts.name}_shared", lines * number, self.parts.dtype)
        part: Expr = const(0)
        for it in apart:
            part = binary("+", binary("*", part, it.extent), thread_digit(self.context, self.layout, it))

        def place(index: Sequence[Expr], part: Expr) -> tuple[Expr, ...]:
            return (self.context.simple(binary("+", binary("*", linear_index(index, shape), number), part)),)

        mine = iterations(self.context, self.result, shape)
        at = (coordinate(self.result, mine.index, Axis.REGISTER, self.context),)
        out = Store(scratch, place(mine.index, part), Load(self.parts, at), span=self.span)
        lower = [low_digit(self.context, self.layout, it) for it in together]
        copies = [thread_digit(self.context, self.layout, it) for it in self.layout.replicas if it.extent > 1]
        once = [binary("==", digit, 0) for digit in (*lower, *copies)]
        # partial results of one thread are told apart by registers; copies of it need not write again
        write: Stmt = If(conjunction(once), (out,)) if once else out
        yield from mine.around((write,), self.span)
        back = iterations(self.context, self.result, shape)
        if self.fold.everyone:
            back = Iterations(back.index, back.loops, (), ())
        at = (coordinate(self.result, back.index, Axis.REGISTER, self.context),)
        body: list[Stmt] = [Store(self.parts, at, Load(scratch, place(back.index, const(0))), span=self.span)]
        if number > 1:
            j = self.context.var("j", number)
            joined = self.fold.join(Load(self.parts, at), Load(scratch, place(back.index, j)))
            body.append(For(j, const(1), number - 1, (Store(self.parts, at, joined, span=self.span),)))
        yield from back.around(body, self.span)


def _steps(it: Iter, lanes: int) -> int:
    """Values of a digit that lanes of one subgroup differ by."""
    return 1 << len(combining((it,), lanes).shuffles)


def _lower(it: Iter, lanes: int) -> Iter:
    return Iter(_steps(it, lanes), it.stride, Axis.THREAD)


def _upper(it: Iter, lanes: int) -> Iter:
    steps = _steps(it, lanes)
    return Iter(it.extent // steps, it.stride * steps, Axis.THREAD)
