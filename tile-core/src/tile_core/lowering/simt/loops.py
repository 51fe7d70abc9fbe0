"""Loops over elements as one thread runs them: takes its iterations, puts each statement where the elements are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ...expr import Buffer, Expr, Space, Var, loads, substitute
from ...program import Alloc, Atomic, If, Stmt, Store
from ...program.visit import expressions, mapped, statements
from ...span import Span
from .context import Context
from .nest import Iterations, conjunction
from .places import place, placed
from .vectors import around, substituted, vectors


@dataclass(frozen=True)
class Loop:
    """A nest over elements: variables, extents, and a body of element statements on tiles."""

    name: str
    vars: tuple[Var, ...]
    extents: tuple[int | Expr, ...]
    body: tuple[Stmt, ...]
    span: Span | None = None


def accesses(body: Sequence[Stmt]) -> Iterator[tuple[Buffer, tuple[Expr, ...], bool]]:
    """(buffer, index, is a write) of every element that a body touches."""
    for s in statements(body):
        for x in expressions(s):
            for load in loads(x):
                yield load.buffer, load.indices, False
        if isinstance(s, Store):
            yield s.buffer, s.indices, True
        if isinstance(s, Atomic):
            yield s.buffer, s.indices, s.op != "load"


def covers(loop: Loop, fragment: Buffer) -> bool:
    """Whether the loop writes every element of a fragment: its index is the loop's own variables, each once."""
    for s in loop.body:
        if isinstance(s, Store) and s.buffer == fragment:
            places = [i for i in s.indices if isinstance(i, Var) and i in loop.vars]
            extents = tuple(loop.extents[loop.vars.index(i)] for i in places)
            if len(set(places)) == len(s.indices) and extents == fragment.shape:
                return True
    return False


def iterated(
    context: Context,
    loop: Loop,
    mine: Iterations,
    staged: Mapping[Buffer, Buffer],
    values: Mapping[Var, Expr],
) -> tuple[Stmt, ...]:
    """The nest over this thread's iterations, by vectors where the target has them."""
    moves = context.instructions.vectors
    if moves is not None:
        body = [substituted(s, values) for s in loop.body]
        plan = vectors(context, moves, mine, body, staged)
        if plan is not None:
            placed = Body(context, staged, mine.first, {}).run
            return around(context, moves, plan, mine, body, placed)
    body = Body(context, staged, mine.first, values).run(loop.body)
    return mine.around(body, loop.span)


@dataclass
class Body:
    """Rewrites element statements of one iteration."""

    context: Context
    staged: Mapping[Buffer, Buffer]
    first: tuple[Expr, ...]
    values: Mapping[Var, Expr]

    def run(self, body: Sequence[Stmt]) -> tuple[Stmt, ...]:
        return tuple(t for s in body for t in self.statement(s))

    def value(self, x: Expr) -> Expr:
        return placed(self.context, substitute(x, dict(self.values)), self.staged)

    def statement(self, s: Stmt) -> Iterator[Stmt]:
        match s:
            case Store():
                where, at = self.place(s.buffer, s.indices)
                yield self.once(where, replace(s, buffer=where, indices=at, value=self.value(s.value)))
            case Atomic():
                where, at = self.place(s.buffer, s.indices)
                value = None if s.value is None else self.value(s.value)
                yield self.once(where, replace(s, buffer=where, indices=at, value=value))
            case Alloc():
                yield s
            case If():
                new = mapped(s, self.value, self.run)
                assert isinstance(new, If)
                known = getattr(new.condition, "value", None)
                yield from (
                    (new,)
                    if known is None or not isinstance(known, bool)
                    else new.then
                    if known
                    else new.other
                )
            case _:
                yield mapped(s, self.value, self.run)

    def place(self, buffer: Buffer, index: Sequence[Expr]) -> tuple[Buffer, tuple[Expr, ...]]:
        return place(self.context, buffer, [self.value(i) for i in index], self.staged)

    def once(self, where: Buffer, s: Stmt) -> Stmt:
        """Threads that hold copies of an iteration leave a write that all can see to the first of them."""
        if where.space in (Space.LOCAL, Space.VAR) or not self.first:
            return s
        return If(conjunction(self.first), (s,), span=s.span)
