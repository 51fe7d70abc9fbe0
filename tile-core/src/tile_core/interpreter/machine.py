"""The interpreter: runs a tile program on numpy arrays, block by block, and checks every access."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..dtypes import INT32, INT64
from ..errors import KernelError, Unsupported
from ..expr import Buffer, Expr, Space, Var
from ..language.eager import solve_dimensions
from ..program import (
    Alloc,
    Assert,
    Assume,
    Atomic,
    Bind,
    Break,
    Breakpoint,
    Continue,
    For,
    If,
    Invoke,
    Launch,
    Parallel,
    Print,
    Region,
    Stmt,
    Store,
    Sync,
    TileOp,
    TileProgram,
    While,
)
from ..program.visit import buffers, statements, written_buffers
from . import tileops
from .evaluate import Lanes, Touched, check_independent
from .memory import Bools, Memory, array_at

Array = NDArray[Any]


def run(program: TileProgram, arguments: Sequence[Any]) -> None:
    """Run ``program`` on numpy arrays and numbers, in the order of its parameters; tensors are changed in place.

    Raises:
        KernelError: at the user's line, for an access out of bounds, a read of something unwritten, iterations that depend on each
            other, a failed assertion, or arguments whose shapes do not fit.
    """
    if program.is_open:
        raise KernelError(
            f"{program.name} has no T.Kernel: what its blocks do must be inferred before it can run",
            program.span,
        )
    with np.errstate(all="ignore"):
        Machine(program, arguments).run()


@dataclass
class Jumps:
    """Lanes that left the innermost loop, or its present iteration."""

    broken: Bools
    continued: Bools


@dataclass
class Machine:
    """One run of one program."""

    program: TileProgram
    arguments: Sequence[Any]
    store: dict[Buffer, Memory] = field(default_factory=dict[Buffer, Memory])
    base: dict[Var, Array] = field(default_factory=dict[Var, Array])
    private: dict[Buffer, Memory] = field(default_factory=dict[Buffer, Memory])
    threads: int = 0
    iterations: int = 0  # of the T.Parallel loop that is running
    jumps: list[Jumps] = field(default_factory=list[Jumps])

    def run(self) -> None:
        self.bind()
        lanes = self.lanes(1, {})
        for s in self.program.body:
            if isinstance(s, Launch):
                self.launch(s)
            else:
                self.body((s,), lanes, np.ones(1, dtype=np.bool_))

    def bind(self) -> None:
        """Give parameters their values, and symbolic dimensions theirs."""
        dims: dict[str, int] = {}
        if len(self.arguments) != len(self.program.params):
            raise KernelError(
                f"{self.program.name} takes {len(self.program.params)} arguments, not {len(self.arguments)}"
            )
        for p, value in zip(self.program.params, self.arguments, strict=True):
            if p.tensor is not None:
                solve_dimensions(p.name, p.tensor.shape, value.shape, dims, p.span)
                for want, have in zip(p.tensor.strides or (), value.strides, strict=False):
                    if isinstance(want, Var):
                        dims.setdefault(want.name, have // value.itemsize)
                if p.tensor.distinct and len(np.unique(value)) < value.size:
                    raise KernelError(
                        f"elements of {p.name} are equal, and it is declared to have none", p.span
                    )
                self.store[p.tensor] = Memory(value, None)
            elif isinstance(p.value, Var):
                self.base[p.value] = np.asarray(value).astype(p.value.dtype.as_numpy())
        for name, value in dims.items():
            for type in (INT32, INT64):
                if abs(value) < 2 ** (type.bits - 1):
                    self.base[Var(name, type)] = np.asarray(value, type.as_numpy())

    def lanes(self, count: int, more: Mapping[Var, Array], touched: Touched | None = None) -> Lanes:
        return Lanes(count, {**self.base, **more}, self.memory, touched)

    def memory(self, buffer: Buffer) -> Memory:
        found = self.private.get(buffer) or self.store.get(buffer)
        if found is not None:
            return found
        if buffer.base is not None:
            return self.over_pointer(buffer)
        if buffer.source is None:
            raise KernelError(f"{buffer.name} does not exist here", buffer.span)
        shape = tuple(self.extent(d) for d in buffer.shape)
        strides = None if buffer.strides is None else tuple(self.extent(s) for s in buffer.strides)
        return self.memory(buffer.source).view(shape, buffer.dtype, strides)

    def over_pointer(self, buffer: Buffer) -> Memory:
        """A tensor made over a pointer parameter: the memory at that address."""
        lanes = self.lanes(1, {})
        shape = tuple(lanes.number(d) for d in buffer.shape)
        strides = None if buffer.strides is None else tuple(lanes.number(d) for d in buffer.strides)
        address = lanes.number(buffer.base) if buffer.base is not None else 0
        return Memory(array_at(address, shape, strides, buffer.dtype), None)

    def extent(self, d: int | Expr) -> int:
        return d if isinstance(d, int) else self.lanes(1, {}).number(d)

    def launch(self, s: Launch) -> None:
        grid = [self.extent(g) for g in s.grid]
        outside = dict(self.store)
        self.threads = s.thread_count if s.thread_vars else 0
        # the first extent changes fastest
        for number in range(prod(grid)):
            more: dict[Var, Array] = {}
            for v, extent in zip(s.vars, grid, strict=True):
                number, at = divmod(number, extent)
                more[v] = np.asarray(at, np.int32)
            count = max(1, self.threads)
            more |= self.thread_numbers(s)
            self.body(s.body, self.lanes(count, more), np.ones(count, dtype=np.bool_))
            self.store = dict(outside)
        self.threads = 0

    @staticmethod
    def thread_numbers(s: Launch) -> dict[Var, Array]:
        """Thread numbers of each lane; the first dimension changes fastest."""
        out: dict[Var, Array] = {}
        linear = np.arange(s.thread_count)
        for v, extent in zip(s.thread_vars, s.threads, strict=False):
            out[v] = (linear % extent).astype(np.int32)
            linear = linear // extent
        return out

    def body(self, body: Sequence[Stmt], lanes: Lanes, mask: Bools) -> None:
        for s in body:
            if self.jumps:
                mask = mask & ~self.jumps[-1].broken & ~self.jumps[-1].continued
            if not mask.any():
                return
            lanes.place = s.span
            try:
                self.statement(s, lanes, mask)
            except KernelError as error:
                raise error.at(s.span)  # noqa: B904  the same error

    def statement(self, s: Stmt, lanes: Lanes, mask: Bools) -> None:
        match s:
            case TileOp():
                tileops.run(s, lanes, mask)
            case Store():
                lanes.store(s.buffer, s.indices, lanes.value(s.value, mask), mask, s.span)
            case Bind():
                lanes.variables[s.var] = lanes.value(s.value, mask)
            case Parallel():
                self.parallel(s, lanes, mask)
            case For():
                self.loop(s, lanes, mask)
            case While():
                self.while_(s, lanes, mask)
            case If():
                test = np.broadcast_to(lanes.value(s.condition, mask), mask.shape)
                self.body(s.then, lanes, mask & test)
                self.body(s.other, lanes, mask & ~test)
            case Break():
                self.jumps[-1].broken |= mask
            case Continue():
                self.jumps[-1].continued |= mask
            case Alloc():
                self.allocate(s.buffer)
                if s.values:
                    self.store[s.buffer].data[:] = s.values
            case Atomic():
                self.atomic(s, lanes, mask)
            case Sync():
                if not s.threads and not mask.all():
                    raise KernelError(
                        "only some threads reach T.sync_threads: the others would wait for ever", s.span
                    )
            case Invoke():
                raise Unsupported(f"{s.function} is a function of a target: the interpreter has none", s.span)
            case Print():
                self.print(s, lanes, mask)
            case Assert() | Assume():
                test = np.broadcast_to(lanes.value(s.condition, mask), mask.shape)
                if (mask & ~test).any():
                    what = s.message if isinstance(s, Assert) else "an assumption (T.assume) does not hold"
                    raise KernelError(f"assertion failed: {what}" if isinstance(s, Assert) else what, s.span)
            case Breakpoint():
                self.debug(lanes, s)
            case _:
                raise TypeError(type(s).__name__)

    def allocate(self, buffer: Buffer) -> None:
        shape = tuple(self.extent(d) for d in buffer.shape)
        private = self.threads if buffer.space in (Space.LOCAL, Space.VAR) else 0
        if self.iterations and buffer.space in (Space.LOCAL, Space.VAR):
            self.private[buffer] = Memory.fresh(shape, buffer.dtype, self.iterations)
            return
        self.store[buffer] = Memory.fresh(shape, buffer.dtype, private)

    def parallel(self, s: Parallel, lanes: Lanes, mask: Bools) -> None:
        if not mask.all():
            raise KernelError("only some threads of the block reach a T.Parallel loop", s.span)
        extents = [lanes.number(e) for e in s.extents]
        count = int(np.prod(extents))
        if count <= 0:
            return
        numbers = np.unravel_index(np.arange(count), extents)
        inner = {
            v: self.uniform(x)
            for v, x in lanes.variables.items()
            if np.ndim(x) == 0 or np.size(np.unique(x)) == 1
        }
        inner |= {v: n.astype(v.dtype.as_numpy()) for v, n in zip(s.vars, numbers, strict=True)}
        touched = Touched()
        outer, self.private = self.private, dict(self.private)
        written = self.privatise(s, count)
        saved, self.jumps = self.jumps, []
        self.iterations = count
        self.body(s.body, Lanes(count, inner, self.memory, touched, s.span), np.ones(count, dtype=np.bool_))
        self.jumps, self.iterations = saved, 0
        self.private = outer
        for buffer in written:
            self.memory(buffer).forget()
        check_independent(touched)

    @staticmethod
    def uniform(x: Array) -> Array:
        return x if np.ndim(x) == 0 else np.asarray(x.reshape(-1)[0])

    def privatise(self, s: Parallel, count: int) -> list[Buffer]:
        """Scratch that is private to a thread becomes private to an iteration; afterwards its contents are unknown."""
        written = {b.storage for t in statements(s.body) for b in written_buffers(t)}
        out: list[Buffer] = []
        for buffer in buffers(s.body):
            if (
                buffer.space not in (Space.LOCAL, Space.VAR)
                or buffer.source is not None
                or buffer not in self.store
            ):
                continue
            if buffer not in written:
                if self.store[buffer].lanes:
                    raise KernelError(f"{buffer.name} is private to a thread and read in T.Parallel", s.span)
                continue
            old = self.store[buffer]
            data = old.data[0] if old.lanes else old.data
            copies = np.ascontiguousarray(np.broadcast_to(data, (count, *data.shape)))
            flags = None
            if old.written is not None:
                first = old.written.reshape(-1)[: data.nbytes]
                flags = np.ascontiguousarray(np.broadcast_to(first, (count, data.nbytes))).reshape(-1)
            self.private[buffer] = Memory(copies, flags, True)
            out.append(buffer)
        return out

    def loop(self, s: For, lanes: Lanes, mask: Bools) -> None:
        if s.var is None:
            raise KernelError("a loop without an index was left open", s.span)
        start = np.broadcast_to(np.asarray(lanes.value(s.start, mask)), mask.shape).astype(np.int64)
        extent = s.extent if isinstance(s.extent, int) else lanes.value(s.extent, mask)
        counts = np.broadcast_to(np.asarray(extent), mask.shape).astype(np.int64)
        rounds = int(counts[mask].max())
        jumps = Jumps(np.zeros_like(mask), np.zeros_like(mask))
        self.jumps.append(jumps)
        for n in range(max(0, rounds)):
            jumps.continued[:] = False
            active = mask & (counts > n) & ~jumps.broken
            if not active.any():
                break
            value = start + n * s.step
            lanes.variables[s.var] = (value if lanes.count > 1 else value[:1].reshape(())).astype(
                s.var.dtype.as_numpy()
            )
            self.body(s.body, lanes, active)
        self.jumps.pop()

    def while_(self, s: While, lanes: Lanes, mask: Bools) -> None:
        jumps = Jumps(np.zeros_like(mask), np.zeros_like(mask))
        self.jumps.append(jumps)
        active = mask
        while True:
            jumps.continued[:] = False
            active = active & ~jumps.broken
            if not active.any():
                break
            active = active & np.broadcast_to(lanes.value(s.condition, active), mask.shape)
            if not active.any():
                break
            self.body(s.body, lanes, active)
        self.jumps.pop()

    def atomic(self, s: Atomic, lanes: Lanes, mask: Bools) -> None:
        """Lanes act one after the other, in order of their number."""
        memory = self.memory(s.buffer)
        index = lanes.indices(s.buffer, s.indices, mask, s.span)
        value = None if s.value is None else np.broadcast_to(lanes.value(s.value, mask), mask.shape)
        before = np.zeros(mask.shape, dtype=memory.data.dtype)
        for lane in np.flatnonzero(mask):
            at = tuple(int(np.broadcast_to(i, mask.shape)[lane]) for i in index)
            if (
                s.op != "store"
                and memory.written is not None
                and not memory.is_written(tuple(np.asarray(i) for i in at))
            ):
                raise KernelError(f"{s.buffer.name} is read before that element is written", s.span)
            before[lane] = memory.data[at]
            if value is None:
                continue
            new = (
                value[lane]
                if s.op == "store"
                else tileops.combine(s.op, before[lane], value[lane], s.buffer.dtype)
            )
            memory.data[at] = np.asarray(new).astype(memory.data.dtype)
            memory.mark(tuple(np.asarray(i) for i in at))
        if s.result is not None:
            lanes.variables[s.result] = before if lanes.count > 1 else before[0]

    def print(self, s: Print, lanes: Lanes, mask: Bools) -> None:
        shown = []
        for v in s.values:
            if isinstance(v, Region):
                shown.append(str(tileops.read(v, lanes)))
            else:
                value = np.broadcast_to(lanes.value(v, mask), mask.shape)[mask]
                shown.append(str(value[0]) if value.size and (value == value[0]).all() else str(value))
        print(*(x for x in (s.message, *shown) if x))

    def debug(self, lanes: Lanes, s: Breakpoint) -> None:
        """Python's debugger, with the kernel's tiles and variables as locals of ``here``."""
        here = dict(self.names(lanes))
        del s
        breakpoint()
        del here

    def names(self, lanes: Lanes) -> Iterator[tuple[str, Any]]:
        for buffer, memory in self.store.items():
            yield buffer.name, memory.data
        for var, value in lanes.variables.items():
            yield var.name, value
