"""Atomic updates in WGSL: functions of the language on 32-bit integers, loops of compare and exchange for all else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tile_core.dtypes import DType
from tile_core.errors import InternalError, Unsupported
from tile_core.program import Atomic

from .storage import Form, Stored

if TYPE_CHECKING:
    from .printer import Printer

FUNCTIONS = {
    "add": "atomicAdd", "max": "atomicMax", "min": "atomicMin", "or": "atomicOr", "and": "atomicAnd", "xor": "atomicXor",
}  # fmt: skip
FLOATS = {"add": "{} + {}", "max": "tile_max({}, {})", "min": "tile_min({}, {})"}
INTEGERS = {
    "add": "{} + {}", "max": "max({}, {})", "min": "min({}, {})", "or": "{} | {}", "and": "{} & {}", "xor": "{} ^ {}",
}  # fmt: skip


def update(printer: Printer, s: Atomic) -> Iterator[str]:
    """The lines of one update. Raises ``Unsupported``: an order of memory, which WGSL's atomics do not have."""
    if s.order != "relaxed":
        raise Unsupported(
            f"an atomic update with the order {s.order!r}",
            s.span,
            why="atomic operations of WGSL are relaxed: they order no other memory between blocks",
            help="use relaxed updates, and a kernel of its own for what must come after",
        )
    memory, b = printer.memory, s.buffer
    stored = memory.of(b)
    if stored.form is not Form.ATOMIC:
        raise InternalError(f"{b.name} is updated but not declared atomic")
    word, slot = memory.addresses.split(memory.at(b, s.indices), memory.per_word(b.dtype))
    place = f"&{stored.name}[{printer.text(word)}]"
    result = "" if s.result is None else f"{printer.named(s.result)} = "
    if s.op == "load":
        yield f"{result}{memory.element(b, memory.at(b, s.indices))};"
        return
    if s.value is None:
        raise InternalError(f"an atomic {s.op} without a value")
    value = printer.text(s.value)
    if (
        b.dtype.is_integer
        and b.dtype.bits == 32
        and s.op in FUNCTIONS
        and stored.cell == printer.scalars.register(b.dtype)
    ):
        yield f"{result}{FUNCTIONS[s.op]}({place}, {value});"
    elif s.op == "store" and b.dtype.bits == 32:
        yield memory.put_word(stored, word, printer.scalars.bits(value, b.dtype))
    else:
        yield from _exchanged(printer, s, stored, place, printer.text(slot), value)


def _exchanged(
    printer: Printer, s: Atomic, stored: Stored, place: str, slot: str, value: str
) -> Iterator[str]:
    """Compare and exchange of the word until nobody else came between. The word's other elements stay."""
    t, scalars = s.buffer.dtype, printer.scalars
    name = f"{printer.names.of(s.result)}" if s.result is not None else ""
    if name:
        yield f"var {name}: {scalars.register(t)};"
    seen = "seen" if stored.cell == "u32" else "bitcast<u32>(seen)"
    old = scalars.taken(seen, slot, t)
    new = (
        value
        if s.op == "store"
        else _operation(s.op, t, scalars.widened("old", t), scalars.widened("value", t), s)
    )
    new = new if s.op == "store" else scalars.rounded(scalars.wrapped(f"({new})", t), t)
    bits = scalars.placed(f"({new})", slot, t)
    bits = bits if scalars.width(t) == 32 else f"({seen} & ~{scalars.mask(slot, t)}) | {bits}"
    yield "{"
    yield f"  let value = {value};"
    yield f"  let place = {place};"
    yield "  var seen = atomicLoad(place);"
    yield "  loop {"
    yield f"    let old = {old};"
    yield f"    let bits = {bits};"
    yield f"    let done = atomicCompareExchangeWeak(place, seen, {'bits' if stored.cell == 'u32' else 'bitcast<i32>(bits)'});"
    yield "    if (done.exchanged) { break; }"
    yield "    seen = done.old_value;"
    yield "  }"
    if name:
        yield f"  {name} = {old};"
    yield "}"


def _operation(op: str, t: DType, old: str, value: str, s: Atomic) -> str:
    form = (FLOATS if t.is_float else INTEGERS).get(op)
    if form is None:
        raise Unsupported(f"no atomic {op} of {t}", s.span)
    return form.format(old, value)
