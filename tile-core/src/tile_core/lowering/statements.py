"""Statements of a block as TVM statements, by kind."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field

from .. import _tvm as tvm
from ..errors import InternalError, Unsupported
from ..expr import Buffer, Const, Expr, Load, Space, reads, walk
from ..program import (
    Alloc,
    Assert,
    Assume,
    Atomic,
    AtomicTile,
    Bind,
    Break,
    Breakpoint,
    Continue,
    Copy,
    Fill,
    For,
    Gemm,
    If,
    Parallel,
    Print,
    Quantify,
    Reduce,
    Scan,
    Stmt,
    Store,
    Sync,
    Transpose,
    While,
)
from ..program.visit import statements, written_buffers
from . import atomics, copies, matmul, numbers, printing, reductions
from .matmul import Vectors
from .nodes import Node, add, i64, multiply, run, sequence, when
from .scope import Scope

# TVM's analyzer spells out what a name stands for: a chain of names that each use the one before twice would double
# with each. A longer value is kept in memory, where the analyzer does not look and LLVM finds it again.
LONG = 48


@dataclass(frozen=True)
class Statements:
    """Lowers statement after statement; ``vectors`` are the machine's vector registers."""

    scope: Scope
    vectors: Vectors
    sizes: dict[Expr, int] = field(
        default_factory=dict[Expr, int]
    )  # of values that names stand for, spelled out

    def body(self, body: Iterable[Stmt]) -> list[Node]:
        """One after the other. What is assumed holds until the end of the body."""
        out: list[Node] = []
        with ExitStack() as facts:
            for s in body:
                out += self.one(s)
                fact = self.scope.condition(s.condition) if isinstance(s, Assume) else None
                if fact is not None:
                    facts.enter_context(self.scope.assuming(fact))
        return out

    def one(self, s: Stmt) -> list[Node]:
        scope = self.scope
        match s:
            case Copy():
                return copies.copy(scope, s)
            case Fill():
                return copies.fill(scope, s)
            case Gemm():
                return matmul.gemm(scope, s, self.vectors)
            case Reduce():
                return reductions.reduce(scope, s)
            case Scan():
                return reductions.scan(scope, s)
            case Transpose():
                return copies.transpose(scope, s)
            case AtomicTile():
                return atomics.atomic_tile(scope, s)
            case Quantify():
                return reductions.quantify(scope, s)
            case Store():
                return self._store(s)
            case Bind():
                return self._bind(s)
            case Atomic():
                return atomics.atomic(scope, s)
            case _:
                return self._control(s)

    def _control(self, s: Stmt) -> list[Node]:
        match s:
            case Parallel():
                return self._parallel(s)
            case For():
                return self._for(s)
            case While():
                return [tvm.While(self.scope.value(s.condition), sequence(self.body(s.body)))]
            case If():
                return self._if(s)
            case Break():
                return [tvm.Evaluate(tvm.tirx.break_loop())]
            case Continue():
                return [tvm.Evaluate(tvm.tirx.continue_loop())]
            case Print():
                return printing.print_(self.scope, s)
            case Assert():
                return self._assert(s)
            case Alloc() | Sync() | Assume():
                return []  # memory is placed at first use; a block is one thread of control
            case Breakpoint():
                raise Unsupported(
                    "breakpoint() needs the interpreter", s.span, help="run with TILE_INTERPRET=1"
                )
            case _:
                raise InternalError(f"no lowering of {type(s).__name__}", s.span)

    def _store(self, s: Store) -> list[Node]:
        scope = self.scope
        place = [scope.wide(i) for i in s.indices]
        value = s.value
        if isinstance(value, Load) and value.dtype == s.buffer.dtype:
            source = [scope.wide(i) for i in value.indices]
            if scope.unproved(value.buffer, source) is None:  # the same bits, even of a NaN
                return scope.write_bits(s.buffer, place, scope.stored(value.buffer, source))
        return scope.write(s.buffer, place, scope.value(value))

    def _bind(self, s: Bind) -> list[Node]:
        scope = self.scope
        size = sum(self.sizes.get(e, 1) for e in walk(s.value))
        long = size > LONG and not s.var.type.is_bool
        integer = s.value.dtype.is_integer and s.value.dtype.bits >= 32
        if not long:
            self.sizes[s.var] = size
        if integer and not long and not reads(s.value):
            scope.define_index(s.var, scope.wide(s.value))
            return []
        var = tvm.Var(s.var.name, numbers.held(s.var.type))
        value = scope.value(s.value)
        scope.define(s.var, var)
        if not long:
            return [tvm.BindStmt(var, value)]
        cell = scope.memory.cell(s.var.name, numbers.held(s.var.type))
        stored = tvm.BufferStore(cell, value, [i64(0)])
        return [stored, tvm.BindStmt(var, tvm.BufferLoad(cell, [i64(0)]))]

    def _if(self, s: If) -> list[Node]:
        scope = self.scope
        condition = scope.value(s.condition)
        fact = scope.condition(s.condition)
        if fact is None:
            return when(condition, self.body(s.then), self.body(s.other))
        with scope.assuming(fact):
            then = self.body(s.then)
        if not scope.is_comparison(s.condition):
            return when(condition, then, self.body(s.other))
        with scope.assuming(tvm.Not(fact)):
            return when(condition, then, self.body(s.other))

    def _parallel(self, s: Parallel) -> list[Node]:
        """Nested loops, the last variable innermost: LLVM makes vectors of it.

        A private scalar that an iteration writes begins each iteration with the value it had before the loop.
        """
        scope = self.scope
        highs = [scope.extent(e) for e in s.extents]
        indices = [scope.ranged(v.name, i64(0), high) for v, high in zip(s.vars, highs, strict=True)]
        for var, index in zip(s.vars, indices, strict=True):
            scope.define_index(var, index)
        before: list[Node] = []
        out: list[Node] = []
        for b in private_scalars(s):
            old = tvm.Var(f"{b.name}_before", numbers.storage(b.dtype))
            before.append(tvm.BindStmt(old, scope.stored(b, ())))
            out += scope.write_bits(b, (), old)
        out += self.body(s.body)
        for index, high in zip(reversed(indices), reversed(highs), strict=True):
            out = [tvm.For(index, i64(0), high, tvm.ForKind.SERIAL, sequence(out))]
        return [*before, *out]

    def _for(self, s: For) -> list[Node]:
        scope = self.scope
        before: list[Node] = []
        start = self._once(s.start, before)
        count = self._once(s.extent, before)
        number = scope.ranged("i" if s.var is None else s.var.name, i64(0), count)
        if s.var is not None:
            scope.define_index(s.var, add(start, multiply(number, i64(s.step))))
        return [*before, tvm.For(number, i64(0), count, tvm.ForKind.SERIAL, sequence(self.body(s.body)))]

    def _once(self, x: int | Expr, before: list[Node]) -> Node:
        """An index that is read once, before the loop: the loop may change what it reads."""
        if isinstance(x, (int, Const)) or not reads(x):
            return self.scope.extent(x)
        var = tvm.Var("bound", "int64")
        before.append(tvm.BindStmt(var, self.scope.wide(x)))
        return var

    def _assert(self, s: Assert) -> list[Node]:
        reports = self.scope.reports
        reports.failures.append((s.message, s.span))
        number = i64(len(reports.failures))
        fail = [run("tile.fail", reports.context, number), tvm.tirx.Return(tvm.IntImm("int32", 0))]
        return when(tvm.Not(self.scope.value(s.condition)), fail)


def private_scalars(s: Parallel) -> list[Buffer]:
    """Private scalars from outside a parallel loop that its iterations write."""
    inside = list(statements(s.body))
    own = {x.buffer for x in inside if isinstance(x, Alloc)}
    written = dict.fromkeys(b for x in inside for b in written_buffers(x))
    return [b for b in written if b.space is Space.VAR and b.source is None and b not in own]
