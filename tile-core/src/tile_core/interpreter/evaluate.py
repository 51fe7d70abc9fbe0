"""Evaluate expressions for many lanes at once: iterations of a parallel loop, or threads of a block."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import KernelError
from ..expr import Binary, Bitcast, Buffer, Call, Cast, Const, Expr, Load, Select, Unary, Var, index_text
from ..span import Span
from . import scalars
from .memory import Bools, Ints, Memory

Array = NDArray[Any]


@dataclass
class Touched:
    """Elements that the lanes of a parallel loop read and wrote, to find iterations that depend on each other."""

    reads: list[tuple[Buffer, Ints, Ints, Span | None]] = field(default_factory=list[Any])
    writes: list[tuple[Buffer, Ints, Ints, Span | None]] = field(default_factory=list[Any])


@dataclass
class Lanes:
    """State of one group of lanes. ``numbers`` counts them; variables hold one value, or one for each lane."""

    count: int
    variables: dict[Var, Array]
    memory: Callable[[Buffer], Memory]
    touched: Touched | None = None
    place: Span | None = None

    @property
    def numbers(self) -> Ints:
        return np.arange(self.count)

    def value(self, x: Expr, mask: Bools) -> Array:
        """The value of ``x`` in lanes where ``mask`` holds; other lanes hold anything."""
        match x:
            case Const():
                return np.asarray(x.value).astype(x.type.as_numpy())
            case Var():
                return self.variables[x]
            case Load():
                return self.load(x, mask)
            case Binary():
                return self.operation(x, mask)
            case Unary():
                return scalars.unary(x.op, self.value(x.value, mask), x.value.dtype)
            case Cast():
                return scalars.convert(self.value(x.value, mask), x.value.dtype, x.type)
            case Bitcast():
                return np.ascontiguousarray(self.value(x.value, mask)).view(x.type.as_numpy())
            case Call():
                values = [self.value(a, mask) for a in x.arguments]
                return scalars.function(x.function, values, x.arguments[0].dtype, x.type)
            case Select():
                return self.chosen(x, mask)
            case _:
                raise TypeError(type(x).__name__)

    def operation(self, x: Binary, mask: Bools) -> Array:
        a, b = self.value(x.a, mask), self.value(x.b, mask)
        if x.op in ("//", "%", "truncdiv", "truncmod") and x.a.dtype.is_integer:
            zero = np.broadcast_to(b == 0, mask.shape) & mask
            if zero.any():
                raise KernelError("division by zero", x.span or self.place)
            b = np.where(b == 0, np.asarray(1, b.dtype), b)
        return scalars.binary(x.op, a, b, x.a.dtype)

    def chosen(self, x: Select, mask: Bools) -> Array:
        test = np.broadcast_to(self.value(x.condition, mask), mask.shape)
        yes, no = (mask & test, mask & ~test) if x.lazy else (mask, mask)
        type = x.dtype.as_numpy()
        then = self.value(x.then, yes) if yes.any() else np.zeros((), type)
        other = self.value(x.other, no) if no.any() else np.zeros((), type)
        return np.where(test, then, other).astype(type)

    def number(self, x: Expr | int) -> int:
        """The value of ``x``, which must be the same in all lanes.

        Raises:
            KernelError: lanes differ: a step of the whole block depends on the thread.
        """
        if isinstance(x, int):
            return x
        found = np.unique(self.value(x, np.ones(self.count, dtype=np.bool_)))
        if found.size != 1:
            raise KernelError(
                "threads disagree about a value that the whole block uses", x.span or self.place
            )
        return int(found[0])

    def indices(
        self, buffer: Buffer, index: tuple[Expr, ...], mask: Bools, span: Span | None
    ) -> tuple[Ints, ...]:
        """Index arrays, checked against the bounds of the buffer in active lanes; inactive ones get 0."""
        memory = self.memory(buffer)
        shape = memory.data.shape[1:] if memory.lanes else memory.data.shape
        out: list[Ints] = [self.numbers] if memory.lanes else []
        for n, (i, extent) in enumerate(zip(index, shape, strict=True)):
            at = np.broadcast_to(np.asarray(self.value(i, mask)).astype(np.int64), mask.shape)
            wrong = mask & ((at < 0) | (at >= extent))
            if wrong.any():
                bad = int(at[wrong][0])
                raise KernelError(
                    f"index {bad} is out of range for dimension {n} of {buffer.name}, which has size {extent}",
                    span or self.place,
                    why=f"in {buffer.name}[{index_text(index)}]",
                )
            out.append(np.where(mask, at, 0) if not wrong.any() else at)
        return tuple(out) if out else (np.zeros(0, dtype=np.int64),)[:0]

    def load(self, x: Load, mask: Bools) -> Array:
        memory = self.memory(x.buffer)
        if 0 in memory.data.shape:
            return np.zeros((), memory.data.dtype)
        index = self.indices(x.buffer, x.indices, mask, x.span)
        full = index or ()
        if memory.written is not None:
            ready = np.broadcast_to(memory.is_written(full), mask.shape)
            if (mask & ~ready).any():
                raise KernelError(
                    f"{x.buffer.name} is read before that element is written",
                    x.span or self.place,
                    help="clear or fill the tile first",
                )
        if self.touched is not None and full:
            at = np.broadcast_to(memory.flat_index(full), mask.shape)
            self.touched.reads.append((x.buffer, at[mask], self.numbers[mask], x.span or self.place))
        return memory.data[full]

    def store(
        self, buffer: Buffer, index: tuple[Expr, ...], value: Array, mask: Bools, span: Span | None
    ) -> None:
        """Write ``value`` in active lanes. Two lanes that write different values to one element raise ``KernelError``."""
        memory = self.memory(buffer)
        at = self.indices(buffer, index, mask, span)
        values = np.broadcast_to(value, mask.shape)
        if not at:
            if mask.any():
                self._same(buffer, np.zeros(mask.shape, np.int64), values, mask, span)
                memory.data[()] = values[mask][0]
                memory.mark(())
            return
        flat = np.broadcast_to(memory.flat_index(at), mask.shape)
        self._same(buffer, flat, values, mask, span)
        if self.touched is not None:
            self.touched.writes.append((buffer, flat[mask], self.numbers[mask], span))
        where = tuple(np.broadcast_to(i, mask.shape)[mask] for i in at)
        memory.data[where] = values[mask]
        memory.mark(where)

    def _same(self, buffer: Buffer, flat: Ints, values: Array, mask: Bools, span: Span | None) -> None:
        targets, raw = flat[mask], np.ascontiguousarray(values[mask])
        if targets.size < 2:
            return
        order = np.argsort(targets, kind="stable")
        again = targets[order][1:] == targets[order][:-1]
        if not again.any():
            return
        bits = raw.view(np.uint8).reshape(raw.size, -1)[order]
        if (again & (bits[1:] != bits[:-1]).any(axis=1)).any():
            raise KernelError(
                f"two iterations or threads write different values to one element of {buffer.name}",
                span or self.place,
                why="they run in no order, so the result would be chance",
                help="use T.atomic_add, a reduction, or T.serial",
            )


def _owners(at: Ints, lanes: Ints) -> tuple[Ints, Ints]:
    """Each place that was written, in order, and the iteration that wrote it last."""
    written, last = np.unique(at[::-1], return_index=True)
    return written, lanes[::-1][last]


def _in_bytes(buffer: Buffer, at: Ints, lanes: Ints) -> tuple[Ints, Ints]:
    size = buffer.dtype.as_numpy().itemsize
    return (at[:, None] * size + np.arange(size)).reshape(-1), np.repeat(lanes, size)


def check_independent(touched: Touched) -> None:
    """Raise if an iteration read what another one wrote: iterations of ``T.Parallel`` run in no order."""
    for buffer, at, lanes, span in touched.writes:
        whole = _owners(at, lanes)
        for other, reads, readers, place in touched.reads:
            if other.storage != buffer.storage:
                continue
            written, owner = whole
            if other != buffer:  # two views of one memory: byte by byte
                written, owner = _owners(*_in_bytes(buffer, at, lanes))
                reads, readers = _in_bytes(other, reads, readers)
            if not written.size:
                continue
            nearest = np.minimum(np.searchsorted(written, reads), written.size - 1)
            if ((written[nearest] == reads) & (owner[nearest] != readers)).any():
                raise KernelError(
                    f"iterations of T.Parallel depend on each other through {buffer.name}",
                    span,
                    why="one iteration reads an element that another one writes, and they run in no order",
                    help="write to another tile, or use T.serial",
                    related=[("it is read here", place)] if place else (),
                )
