"""Block lowering: each launch of a program becomes one function that runs a range of blocks, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .. import _tvm as tvm
from ..expr import Buffer, Var
from ..program import Launch, Stmt, TileProgram
from ..span import Span
from . import numbers
from .interface import Interface, pointer_tensors
from .matmul import Vectors
from .memory import Memory
from .nodes import Node, i64, loop, multiply, sequence, subtract
from .scope import Reports, Scope
from .statements import Statements
from .threads import distribute


@dataclass(frozen=True)
class Entry:
    """One launch, lowered. ``scratch``: bytes of each scratch block that the caller hands in, in order.

    The function's parameters are the interface's, then workspaces, scratch blocks, the context, and the first and
    last-plus-one block number.
    """

    name: str
    launch: Launch
    function: Node
    scratch: tuple[int, ...]


@dataclass(frozen=True)
class Lowered:
    """A whole program. ``failures`` and ``prints`` are numbered over all its entries; failures count from 1."""

    interface: Interface
    entries: tuple[Entry, ...]
    failures: tuple[tuple[str, Span | None], ...]
    prints: tuple[tuple[str, tuple[object, ...]], ...]


def lower(program: TileProgram, vectors: Vectors) -> Lowered:
    """Lower every launch. Raises ``Unsupported`` with the span of what cannot be run."""
    interface = Interface.of(program)
    before = tuple(s for s in program.body if not isinstance(s, Launch))
    failures: list[tuple[str, Span | None]] = []
    prints: list[tuple[str, tuple[object, ...]]] = []
    entries = []
    for number, launch in enumerate(program.launches):
        name = entry_name(program.name, number)
        reports = Reports(tvm.pointer("context", "int64"), failures, prints)
        entries.append(_Function(interface, name, distribute(launch), before, reports, vectors).lower())
    return Lowered(interface, tuple(entries), tuple(failures), tuple(prints))


def entry_name(program: str, number: int) -> str:
    """A C name: what is no letter of one becomes an underscore."""
    return f"{''.join(c if c.isascii() and c.isalnum() else '_' for c in program)}_{number}"


@dataclass
class _Function:
    interface: Interface
    name: str
    launch: Launch
    before: Sequence[Stmt]
    reports: Reports
    vectors: Vectors

    def lower(self) -> Entry:
        pointers: dict[Buffer, Node] = {}
        values: dict[Var, Node] = {}
        params = [self._param(p.name, p.value, pointers, values) for p in self.interface.params]
        params += [self._param(v.name, v, pointers, values) for v in self.interface.symbols]
        params += [self._param(b.name, b, pointers, values) for b in self.interface.workspaces]
        for b in pointer_tensors(self.interface.program):
            if b.base in values:
                pointers[b] = values[b.base]
        scope = Scope(Memory(pointers), self.reports)
        for var, value in values.items():
            self._define(scope, var, value)
        begin, end = tvm.Var("begin", "int64"), tvm.Var("end", "int64")
        body = self._blocks(scope, begin, end)
        memory = scope.memory
        params += [s.pointer for s in memory.scratch]
        params += [self.reports.context, begin, end]
        function = tvm.PrimFunc(
            params, sequence([*memory.declarations, *body]), ret_type=tvm.PrimType("int32")
        )
        function = function.with_attr("global_symbol", self.name)
        return Entry(self.name, self.launch, function, tuple(s.bytes for s in memory.scratch))

    def _param(self, name: str, value: Buffer | Var, pointers: dict, values: dict) -> Node:
        if isinstance(value, Buffer):
            pointers[value] = tvm.pointer(name, numbers.storage(value.dtype, value.span))
            return pointers[value]
        if value.dtype.kind == "handle":
            values[value] = tvm.pointer(name, "uint8")
        else:
            values[value] = tvm.Var(name, "uint8" if value.dtype.is_bool else numbers.held(value.dtype))
        return values[value]

    @staticmethod
    def _define(scope: Scope, var: Var, value: Node) -> None:
        t = var.dtype
        if t.is_integer and t.bits >= 32:
            scope.define_index(var, value if numbers.held(t) == "int64" else tvm.Cast("int64", value))
            scope.values[var] = value
        elif t.kind == "handle":
            scope.define(var, value)
        else:
            scope.define(var, numbers.decode(value, t) if t.is_bool else numbers.rounded(value, t))

    def _blocks(self, scope: Scope, begin: Node, end: Node) -> list[Node]:
        """A loop over linear block numbers; the first block variable changes fastest."""
        lower = Statements(scope, self.vectors)
        out = lower.body(self.before)
        block = tvm.Var("block", "int64")
        rest: Node = block
        extents = [scope.extent(g) for g in self.launch.grid]
        inner: list[Node] = []
        for number, (var, extent) in enumerate(zip(self.launch.vars, extents, strict=True)):
            index = scope.ranged(var.name, i64(0), extent)
            last = number == len(extents) - 1
            quotient = rest if last else tvm.Div(rest, extent)
            inner.append(tvm.BindStmt(index, rest if last else subtract(rest, multiply(quotient, extent))))
            rest = quotient
            scope.define_index(var, index)
        inner += lower.body(self.launch.body)
        return [*out, *loop(block, begin, end, inner)]
