"""Atomic updates. A block has one thread here, so only memory that other blocks see needs atomic instructions."""

from __future__ import annotations

from collections.abc import Callable

from .. import _tvm as tvm
from ..dtypes import DType
from ..errors import Unsupported
from ..expr import Buffer, Space
from ..program import Atomic, AtomicTile
from . import arithmetic, numbers
from .copies import aligned
from .nodes import Node, i64, when
from .regions import Box
from .scope import Scope
from .staging import over

UPDATE: dict[str, str] = {"add": "+", "max": "max", "min": "min", "or": "|", "and": "&", "xor": "^"}


def _shared(buffer: Buffer, s: Atomic | AtomicTile) -> bool:
    """Whether other blocks see the buffer. Raises ``Unsupported`` if no instruction can update its elements then."""
    shared = buffer.storage.space is Space.GLOBAL
    if shared and numbers.narrow_integer(buffer.dtype):
        raise Unsupported(
            f"atomic updates of {buffer.dtype} in global memory are not supported on this target",
            s.span,
            help="use int8, or update a tile of the block and copy it",
        )
    return shared


def _type(t: DType) -> str:
    return t.name if numbers.narrow_float(t) else numbers.storage(t)


def _argument(value: Node, t: DType) -> Node:
    """Narrow floats are passed as float32, all else as it is stored."""
    return value if numbers.narrow_float(t) else numbers.encode(value, t)


def shared_update(scope: Scope, op: str, buffer: Buffer, place: list[Node], value: Node) -> Node:
    """The old bits (or float32) of an element that all blocks see, after an atomic instruction."""
    t = buffer.dtype
    kind = "float32" if numbers.narrow_float(t) else numbers.storage(t)
    name = f"tile.atomic_{op}.{_type(t)}"
    return tvm.call_extern(kind, name, scope.address(buffer, place), _argument(value, t))


def _private_update(op: str, old: Node, value: Node, t: DType) -> Node:
    return value if op == "store" else arithmetic.binary(UPDATE[op], old, value, t)


def atomic(scope: Scope, s: Atomic) -> list[Node]:
    place = [scope.wide(i) for i in s.indices]
    t = s.buffer.dtype
    guard = scope.unproved(s.buffer, place)
    value = numbers.zero(t) if s.value is None else scope.value(s.value)
    if s.result is None:
        return _guarded(guard, _update(scope, s, place, value, lambda old: []))
    cell, first = scope.memory.cell("old", _cell(t)), [i64(0)]
    update = _update(scope, s, place, value, lambda old: [tvm.BufferStore(cell, old, first)])
    start = tvm.BufferStore(cell, tvm.Cast(_cell(t), numbers.zero(t)), first)
    result = tvm.Var(s.result.name, numbers.held(t))
    scope.define(s.result, result)
    kept = tvm.BufferLoad(cell, first)
    bind = tvm.BindStmt(result, numbers.decode(kept, t) if t.is_bool else kept)
    return [start, *_guarded(guard, update), bind]


def _guarded(guard: Node | None, body: list[Node]) -> list[Node]:
    return when(guard, body) if body else []


def _cell(t: DType) -> str:
    return "uint8" if t.is_bool else numbers.held(t)


def _update(
    scope: Scope, s: Atomic, place: list[Node], value: Node, keep: Callable[[Node], list[Node]]
) -> list[Node]:
    t = s.buffer.dtype
    if _shared(s.buffer, s):
        old = shared_update(scope, s.op, s.buffer, place, value)
        return keep(old) or [tvm.Evaluate(old)]
    bits = scope.stored(s.buffer, place)
    kept = keep(bits if t.is_bool else numbers.decode(bits, t))
    if s.op == "load":
        return kept
    new = _private_update(s.op, numbers.decode(bits, t), value, t)
    store = tvm.BufferStore(
        scope.memory.array(s.buffer), numbers.encode(new, t), [scope.offset(s.buffer, place)]
    )
    return [*kept, store]


def atomic_tile(scope: Scope, s: AtomicTile) -> list[Node]:
    value, target = aligned(Box.of(scope, s.value), Box.of(scope, s.dst))
    t = target.dtype
    shared = _shared(target.buffer, s)

    def update(at: list[Node]) -> list[Node]:
        x = value.read_as(at, t)
        if not shared:
            return target.write(at, _private_update(s.op, target.read(at), x, t))
        place = target.place(at)
        call = tvm.Evaluate(shared_update(scope, s.op, target.buffer, place, x))
        guard = scope.unproved(target.buffer, place)
        return when(guard, [call])

    return over(scope, target.shape, update)
