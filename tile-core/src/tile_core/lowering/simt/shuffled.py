"""A fragment in another layout, without shared memory: takes two layouts, gives the shuffles and selects between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import gcd

from ...dtypes import DType, dtype
from ...expr import Buffer, Expr, Load, Var, binary, bitcast, cast, const, select
from ...layout.convert import Kind, Moving, convert, moving
from ...layout.layout import Axis
from ...layout.rounds import Rounds, Swap, rounds
from ...program import Bind, For, Stmt, Store
from ...span import Span
from .context import Context
from .exchange import as_word, from_word, of_lane, swapped
from .instructions import VectorMoves

WORD = 32  # bits that one shuffle carries


def shuffled(
    context: Context, source: Buffer, target: Buffer, span: Span | None = None
) -> tuple[Stmt, ...] | None:
    """Statements that fill the fragment ``target`` with the elements of ``source``, which has the same shape and type.

    None if elements leave their subgroup, or the way through shared memory is cheaper. Every thread of the block takes part.
    """
    moves = context.instructions.vectors
    have, need = context.layout(source), context.layout(target)
    if moves is None or context.threads % moves.subgroup or source.dtype.lanes > 1:
        return None
    found = convert(have, need, source.dtype.bits, moves.subgroup)
    digits = moving(have, need, moves.subgroup)
    if found.kind is not Kind.SHUFFLE or found.plan is None or digits is None:
        return None
    return tuple(_Exchange(context, moves, digits, rounds(found.plan), span).run(source, target))


@dataclass(frozen=True)
class _Exchange:
    context: Context
    moves: VectorMoves
    digits: Moving
    steps: Rounds
    span: Span | None

    def run(self, source: Buffer, target: Buffer) -> Iterator[Stmt]:
        per, strides, loops = self.packing(source.dtype)
        lane = self.context.simple(binary("%", self.context.thread, self.moves.subgroup))
        odd: dict[int, Expr] = {}
        for s in (*self.steps.before, *self.steps.after):
            if s.lanes not in odd:
                yield from self.bound("odd", _odd(lane, s.lanes), odd, s.lanes)
        start, end = const(0), const(0)
        nest: list[tuple[Var, int]] = []
        for extent, before, after in loops:
            var = self.context.var("r", extent)
            nest.append((var, extent))
            start = binary("+", start, binary("*", var, before))
            end = binary("+", end, binary("*", var, after))
        words: dict[int, Expr] = {}
        body = [
            *self.gathered(source, start, [strides[0] * n for n in range(per)], words),
            *self.swaps(self.steps.before, odd, words),
            *self.shuffles(lane, words),
            *self.swaps(self.steps.after, odd, words),
            *self.scattered(target, end, [strides[1] * n for n in range(per)], words),
        ]
        out = tuple(body)
        for var, extent in reversed(nest):
            out = (For(var, const(0), extent, out, "unroll", span=self.span),)
        yield from out

    def packing(self, type: DType) -> tuple[int, tuple[int, int], list[tuple[int, int, int]]]:
        """How many elements a word carries, their strides on both sides, and the digits that are left to loop over."""
        per = 1 if type.is_bool else max(1, WORD // type.bits)
        kept = [k for k in self.digits.kept if k[0] > 1]
        best = max(kept, key=lambda k: (gcd(k[0], per), -k[1] - k[2]), default=(1, 0, 0))
        count = gcd(best[0], per)
        if count == 1:
            return 1, (0, 0), kept
        rest = [k for k in kept if k is not best]
        if best[0] > count:
            rest.append((best[0] // count, best[1] * count, best[2] * count))
        return count, (best[1], best[2]), rest

    def bound(self, name: str, value: Expr, into: dict[int, Expr], at: int) -> Iterator[Stmt]:
        into[at] = var = Var(name, value.dtype, self.context.unique(name))
        yield Bind(var, value)

    def register(self, fragment: Buffer, start: Expr, offset: int) -> tuple[Buffer, tuple[Expr, ...]]:
        place = binary("+", start, offset + self.context.layout(fragment).base(Axis.REGISTER))
        return self.context.register_file(fragment), (self.context.simple(place),)

    def gathered(
        self, source: Buffer, start: Expr, packed: Sequence[int], words: dict[int, Expr]
    ) -> Iterator[Stmt]:
        """The registers that take part, packed into words."""
        for n in range(1 << self.steps.registers):
            at = _sum(self.digits.registers(0), n)
            parts = [Load(*self.register(source, start, at + p)) for p in packed]
            yield from self.bound("word", _packed(parts), words, n)

    def scattered(
        self, target: Buffer, start: Expr, packed: Sequence[int], words: Mapping[int, Expr]
    ) -> Iterator[Stmt]:
        for n, word in sorted(words.items()):
            at = _sum(self.digits.registers(1), n)
            for i, p in enumerate(packed):
                value = _unpacked(word, i, len(packed), target.dtype)
                yield Store(*self.register(target, start, at + p), value, span=self.span)

    def swaps(self, swaps: Sequence[Swap], odd: Mapping[int, Expr], words: dict[int, Expr]) -> Iterator[Stmt]:
        """Lanes exchange registers with themselves, so that in each round all lanes send registers of one number."""
        for s in swaps:
            for n in sorted(words):
                other = n ^ s.register
                if n < other:
                    a, b = words[n], words[other]
                    yield from self.bound("word", select(odd[s.lanes], b, a, lazy=False), words, n)
                    yield from self.bound("word", select(odd[s.lanes], a, b, lazy=False), words, other)

    def shuffles(self, lane: Expr, words: dict[int, Expr]) -> Iterator[Stmt]:
        sources: dict[int, Expr] = {}
        if not self.steps.by_distance:
            yield from self.bound("source", _image(lane, self.steps.source), sources, 0)
        sent = dict(words)
        for r in self.steps.rounds:
            if not self.steps.by_distance:
                source = binary("^", sources[0], r.distance)
                calls, got = of_lane(self.context, self.moves, sent[r.sent], source)
            elif r.distance:
                calls, got = swapped(self.context, self.moves, sent[r.sent], r.distance)
            else:
                calls, got = (), sent[r.sent]
            yield from calls
            words[r.received] = got


def _sum(strides: Sequence[int], bits: int) -> int:
    return sum(s for j, s in enumerate(strides) if bits >> j & 1)


def _image(lane: Expr, columns: Sequence[int]) -> Expr:
    """A linear map of the bits of the lane's number."""
    out: Expr = const(0)
    for j, column in enumerate(columns):
        bit = binary("&", binary(">>", lane, j), 1)
        out = binary("^", out, binary("*", bit, column))
    return out


def _odd(lane: Expr, mask: int) -> Expr:
    out: Expr = const(0)
    for j in range(mask.bit_length()):
        if mask >> j & 1:
            out = binary("^", out, binary(">>", lane, j))
    return binary("!=", binary("&", out, 1), 0)


def _packed(parts: Sequence[Expr]) -> Expr:
    """Elements side by side in one word, the first lowest."""
    if len(parts) == 1:
        return as_word(parts[0])
    out: Expr = const(0, dtype("uint32"))
    for i, part in enumerate(parts):
        bits = cast(bitcast(part, f"uint{part.dtype.bits}"), "uint32")
        out = binary("|", out, binary("<<", bits, const(i * part.dtype.bits, bits.dtype)))
    return out


def _unpacked(word: Expr, i: int, count: int, type: DType) -> Expr:
    if count == 1:
        return from_word(word, type)
    bits = binary(">>", word, const(i * type.bits, word.dtype))
    return bitcast(cast(bits, f"uint{type.bits}"), type)
