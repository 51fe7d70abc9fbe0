"""Atomic read-modify-write of one element, as LLVM IR."""

from __future__ import annotations

from collections.abc import Callable

from .narrow import storage_bits
from .writer import Function, Value

INTEGER_OPS = {"add": "add", "and": "and", "or": "or", "xor": "xor", "max": "max", "min": "min"}
FLOAT_OPS = {"add": "fadd", "max": "fmax", "min": "fmin"}
NATIVE = {"float32": "float", "float64": "double"}
ORDER = "seq_cst"  # satisfies every order a kernel may ask for; on x86 a read-modify-write costs the same in all of them


def define(name: str, operation: str, type_name: str) -> Function | None:
    """``tile.atomic_<op>.<type>(pointer, value)``, which gives the old value; narrow floats take and give float."""
    if not operation.startswith("atomic_"):
        return None
    op = operation.removeprefix("atomic_")
    if storage_bits(type_name):
        return _narrow(name, op, type_name)
    if type_name in NATIVE:
        type = NATIVE[type_name]
        how = FLOAT_OPS.get(op)
    else:
        bits = type_name.removeprefix("u").removeprefix("int")
        type = f"i{bits}"
        how = INTEGER_OPS.get(op)
        how = f"u{how}" if how in ("max", "min") and type_name.startswith("u") else how
    if op in ("load", "store"):
        return _move(name, op, type)
    if how is None:
        return None
    b = Function(name, type, (("ptr", "p"), (type, "x")))
    return b.give(b.emit(type, f"atomicrmw {how} ptr %p, {type} %x {ORDER}"))


def _move(name: str, op: str, type: str) -> Function:
    size = {"float": 4, "double": 8}.get(type) or int(type[1:]) // 8
    b = Function(name, type, (("ptr", "p"), (type, "x")))
    if op == "load":
        return b.give(b.emit(type, f"load atomic {type}, ptr %p {ORDER}, align {size}"))
    b.effect(f"store atomic {type} %x, ptr %p {ORDER}, align {size}")
    return b.give(b.argument(1))


def _narrow(name: str, op: str, type_name: str) -> Function:
    """Compare and swap of the bits until nobody else changed them in between."""
    bits = f"i{storage_bits(type_name)}"
    size = storage_bits(type_name) // 8
    b = Function(name, "float", (("ptr", "p"), ("float", "x")), attributes="")
    first = b.emit(bits, f"load atomic {bits}, ptr %p {ORDER}, align {size}")
    b.effect("br label %again")
    b.label("again")
    seen = b.emit(bits, f"phi {bits} [ {first.text}, %entry ], [ %now, %again ]")
    old = b.call(f"tile.decode.{type_name}", "float", seen)
    new = b.call(f"tile.encode.{type_name}", bits, NARROW_OPS[op](b, old, b.argument(1)))
    b.effect(f"%pair = cmpxchg ptr %p, {bits} {seen.text}, {bits} {new.text} {ORDER} {ORDER}")
    b.effect(f"%now = extractvalue {{ {bits}, i1 }} %pair, 0")
    b.effect(f"%won = extractvalue {{ {bits}, i1 }} %pair, 1")
    b.effect("br i1 %won, label %done, label %again")
    b.label("done")
    return b.give(old)


NARROW_OPS: dict[str, Callable[[Function, Value, Value], Value]] = {
    "add": lambda b, old, x: old + x,
    "max": lambda b, old, x: b.extremum("max", old, x),
    "min": lambda b, old, x: b.extremum("min", old, x),
    "load": lambda b, old, x: old,
    "store": lambda b, old, x: x,
}
