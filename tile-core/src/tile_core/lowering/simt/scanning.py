"""Prefix sums and maxima of a fragment along one dimension: in registers, by shuffles, in shared memory between subgroups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import gcd, prod

from ...expr import Buffer, Expr, Load, Var, binary, const, select
from ...layout.layout import Axis, Iter, Layout, grouped
from ...layout.partition import combining
from ...program import Bind, For, If, Stmt, Store
from ...span import Span
from .context import Context
from .exchange import from_below, of_lane
from .nest import conjunction, low_digit, members, thread_digit


@dataclass(frozen=True)
class Prefix:
    """How to combine two values, in any order; ``start`` changes nothing when it is joined. ``reverse``: from the end on."""

    join: Callable[[Expr, Expr], Expr]
    start: Expr
    reverse: bool


def scanned(
    context: Context, values: Buffer, axis: int, prefix: Prefix, span: Span | None
) -> tuple[Stmt, ...]:
    """Statements that replace the elements of the fragment ``values`` by their prefixes along ``axis``.

    Its layout has digits of its own for each dimension. Registers that hold no element are ``start`` before.
    """
    return tuple(_Scan(context, values, context.layout(values), axis, prefix, span).run())


@dataclass(frozen=True)
class _Scan:
    """Digits of the scanned dimension are done one after the other, the least significant first.

    After each of them a register holds its prefix in the run that the digits done so far count, and ``totals`` what the whole
    run adds up to, in every thread of the run, at the register where these digits are 0.
    """

    context: Context
    values: Buffer
    layout: Layout
    axis: int
    prefix: Prefix
    span: Span | None

    def run(self) -> Iterator[Stmt]:
        count = self.layout.cosize(Axis.REGISTER)
        totals = self.context.private(f"{self.values.name}_totals", count, self.values.dtype)
        k = self.context.var("k", count)
        copy = Store(totals, (k,), Load(self.file, (k,)), span=self.span)
        yield For(k, const(0), count, (copy,), "unroll", span=self.span)
        done: list[Iter] = []
        digits = list(self.digits())
        for it in reversed(digits):
            last = it is digits[0]
            if it.axis is Axis.REGISTER:
                yield from self.registers(it, done, totals)
            elif self.exchangeable(it):
                yield from self.lanes(it, done, totals, last)
            else:
                yield from self.shared(it, done, totals, last)
            done.append(it)

    @property
    def file(self) -> Buffer:
        return self.context.register_file(self.values)

    def digits(self) -> Iterator[Iter]:
        """Digits of the dimension, most significant first; those of the thread number cut where a subgroup ends."""
        groups = grouped(self.layout)
        assert groups is not None, "the caller asks for a layout with digits of its own for each dimension"
        for it in groups[self.axis]:
            if it.extent == 1 or it.axis is Axis.REGISTER:
                yield from (it,) if it.extent > 1 else ()
                continue
            steps = 1 << len(combining((it,), self.together).shuffles)
            if it.extent > steps:
                yield Iter(it.extent // steps, it.stride * steps, Axis.THREAD)
            if steps > 1:
                yield Iter(steps, it.stride, Axis.THREAD)

    @property
    def together(self) -> int:
        """How many neighbouring threads exchange values."""
        moves = self.context.instructions.vectors
        if moves is None or self.layout.base(Axis.THREAD) % moves.subgroup:
            return 1
        return gcd(self.context.threads, moves.subgroup)

    def exchangeable(self, it: Iter) -> bool:
        return it.stride * it.extent <= self.together and it.extent & (it.extent - 1) == 0

    def each(self, digits: Sequence[Iter], body: Callable[[Expr, Expr], Iterable[Stmt]]) -> tuple[Stmt, ...]:
        """``body`` for the register and the number of every value of some register digits."""
        loops = [(self.context.var("r", it.extent), it) for it in digits]
        at: Expr = const(0)
        number: Expr = const(0)
        for var, it in loops:
            at = binary("+", at, binary("*", var, it.stride))
            number = binary("+", binary("*", number, it.extent), var)
        out = tuple(body(at, number))
        for var, it in reversed(loops):
            out = (For(var, const(0), it.extent, out, "unroll", span=self.span),)
        return out

    def others(self, done: Sequence[Iter]) -> list[Iter]:
        """Register digits that are not done."""
        return [it for it in self.layout.on(Axis.REGISTER) if it.extent > 1 and it not in done]

    def joined(self, carry: Expr, base: Expr, done: Sequence[Iter], where: Expr | None) -> tuple[Stmt, ...]:
        """``carry`` goes into all registers of a run. ``where``: only if that holds."""

        def one(at: Expr, _: Expr) -> Iterable[Stmt]:
            place = (self.context.simple(binary("+", base, at)),)
            old = Load(self.file, place)
            new = self.prefix.join(carry, old)
            return (
                Store(
                    self.file,
                    place,
                    new if where is None else select(where, new, old, lazy=False),
                    span=self.span,
                ),
            )

        return self.each([it for it in done if it.axis is Axis.REGISTER], one)

    def registers(self, it: Iter, done: Sequence[Iter], totals: Buffer) -> Iterator[Stmt]:
        carry = self.context.private("carry", 1, self.values.dtype)
        held = Load(carry, (const(0),))

        def line(base: Expr, _: Expr) -> Iterator[Stmt]:
            def at(n: Expr | int) -> Expr:
                turned = binary("-", it.extent - 1, n) if self.prefix.reverse else n
                return self.context.simple(binary("+", base, binary("*", turned, it.stride)))

            n = self.context.var("n", it.extent)
            yield Store(carry, (const(0),), Load(totals, (at(0),)))
            step = (
                *self.joined(held, at(n), done, None),
                Store(carry, (const(0),), self.prefix.join(held, Load(totals, (at(n),)))),
            )
            yield For(n, const(1), it.extent - 1, step, "unroll", span=self.span)
            yield Store(totals, (base,), held)

        yield from self.each([o for o in self.others(done) if o != it], line)

    def lanes(self, it: Iter, done: Sequence[Iter], totals: Buffer, last: bool) -> Iterator[Stmt]:
        digit = low_digit(self.context, self.layout, it)
        place = binary("-", it.extent - 1, digit) if self.prefix.reverse else digit

        def line(base: Expr, _: Expr) -> Iterator[Stmt]:
            run: Expr = Load(totals, (base,))
            distance = 1
            while distance < it.extent:
                calls, got = self.before(run, distance, it, place)
                yield from calls
                grown = Var("run", run.dtype, self.context.unique("run"))
                joined = self.prefix.join(got, run)
                yield Bind(grown, select(binary(">=", place, distance), joined, run, lazy=False))
                run, distance = grown, 2 * distance
            calls, carry = self.before(run, 1, it, place)
            yield from calls
            yield from self.joined(carry, base, done, binary(">", place, 0))
            if not last:
                end = binary("+", self.lane, binary("*", self.away(it.extent - 1, place), it.stride))
                yield from self.kept(totals, base, run, end)

        yield from self.each(self.others(done), line)

    @property
    def lane(self) -> Expr:
        assert self.context.instructions.vectors is not None
        return binary("%", self.context.thread, self.context.instructions.vectors.subgroup)

    def away(self, to: Expr | int, place: Expr) -> Expr:
        """From one place of the scan to another one, in the direction of the digit."""
        return binary("-", place, to) if self.prefix.reverse else binary("-", to, place)

    def before(self, run: Expr, distance: int, it: Iter, place: Expr) -> tuple[tuple[Stmt, ...], Expr]:
        """The value of the lane so many places before this one; where there is none, of any lane."""
        moves = self.context.instructions.vectors
        assert moves is not None
        far = distance * it.stride
        if not self.prefix.reverse:
            return from_below(self.context, moves, run, far)
        source = select(binary(">=", place, distance), binary("+", self.lane, far), self.lane, lazy=False)
        return of_lane(self.context, moves, run, source)

    def kept(self, totals: Buffer, base: Expr, run: Expr, lane: Expr) -> Iterator[Stmt]:
        moves = self.context.instructions.vectors
        assert moves is not None
        calls, total = of_lane(self.context, moves, run, self.context.simple(lane))
        yield from calls
        yield Store(totals, (base,), total, span=self.span)

    def shared(self, it: Iter, done: Sequence[Iter], totals: Buffer, last: bool) -> Iterator[Stmt]:
        """Every thread hands out the totals of its run and reads those of the runs before."""
        others = self.others(done)
        threads = self.context.threads
        flat = self.context.scratch(
            f"{self.values.name}_runs", prod(o.extent for o in others) * threads, self.values.dtype
        )
        digit = thread_digit(self.context, self.layout, it)
        place = binary("-", it.extent - 1, digit) if self.prefix.reverse else digit
        taking_part = members(self.context, self.layout)

        def at(number: Expr, thread: Expr) -> tuple[Expr, ...]:
            return (self.context.simple(binary("+", binary("*", number, threads), thread)),)

        def out(base: Expr, number: Expr) -> Iterable[Stmt]:
            return (Store(flat, at(number, self.context.thread), Load(totals, (base,)), span=self.span),)

        def back(base: Expr, number: Expr) -> Iterable[Stmt]:
            carry = self.context.private("carry", 1, self.values.dtype)
            held = Load(carry, (const(0),))
            n = self.context.var("n", it.extent)
            far = binary("+", self.context.thread, binary("*", self.away(n, place), it.stride))
            value = Load(flat, at(number, far))
            take = Store(carry, (const(0),), self.prefix.join(held, value))
            yield Store(carry, (const(0),), self.prefix.start)
            yield For(n, const(0), it.extent - 1, (If(binary("<", n, place), (take,)),), span=self.span)
            yield from self.joined(held, base, done, None)
            if not last:
                yield Store(carry, (const(0),), self.prefix.start)
                yield For(n, const(0), it.extent, (take,), span=self.span)
                yield Store(totals, (base,), held)

        parts: tuple[Callable[[Expr, Expr], Iterable[Stmt]], ...] = (out, back)
        for body in parts:
            steps = self.each(others, body)
            yield from (If(conjunction(taking_part), steps, span=self.span),) if taking_part else steps
