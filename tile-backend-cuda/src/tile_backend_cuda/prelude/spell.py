"""Inline PTX from rows: instruction text and typed operands in, asm statements of CUDA C++ out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .device_function import Helper, named

CONSTRAINT = {
    "float": "f",
    "double": "d",
    "u32": "r",
    "int": "r",
    "bool": "r",
    "u16": "h",
    "u64": "l",
    "i64": "l",
}


def constraint(kind: str) -> str:
    """The letter of a C++ type: pointers are 64-bit."""
    return "l" if kind.endswith("*") else CONSTRAINT[kind.removeprefix("const ").strip()]


def quoted(ptx: str) -> str:
    return '"' + ptx.replace("\n", "\\n") + '"'


def asm(
    ptx: str,
    outs: Iterable[tuple[str, str]] = (),
    ins: Iterable[tuple[str, str]] = (),
    *,
    volatile: bool = True,
    memory: bool = False,
) -> str:
    """One asm statement. ``outs`` and ``ins`` are (constraint, expression); ``memory`` also orders memory accesses."""
    given = ", ".join(f'"{c}"({e})' for c, e in outs)
    taken = ", ".join(f'"{c}"({e})' for c, e in ins)
    clobber = ' : "memory"' if memory else ""
    tail = f" : {given} : {taken}{clobber}" if given or taken or memory else ""
    return f"asm{' volatile' if volatile else ''}({quoted(ptx)}{tail});"


def predicated(ptx: str, operand: int) -> str:
    """``ptx`` with a predicate ``p`` that holds if the operand of this number is not 0."""
    return f"{{\n.reg .pred p;\nsetp.ne.b32 p, %{operand}, 0;\n{ptx}\n}}"


def pure(
    name: str, family: str, returns: str, parameters: str, ptx: str, host: str, isa: str, **more: Any
) -> Helper:
    """A helper that computes: %0 is the result, %1 and on are the parameters; ``host`` is an expression."""
    ins = [(constraint(t), n) for t, n in named(parameters)]
    body = asm(ptx, [("=" + constraint(returns), "r")], ins, volatile=False)
    return Helper(
        name, family, returns, parameters, f"{returns} r; {body} return r;", f"return {host};", isa, **more
    )


def effect(name: str, family: str, parameters: str, ptx: str, host: str, isa: str, **more: Any) -> Helper:
    """A helper that acts on memory or on order: %0 and on are the parameters; ``host`` is a statement."""
    ins = [(constraint(t), n) for t, n in named(parameters)]
    return Helper(name, family, "void", parameters, asm(ptx, ins=ins, memory=True), host, isa, **more)


def answer(
    name: str, family: str, returns: str, parameters: str, ptx: str, host: str, isa: str, **more: Any
) -> Helper:
    """As ``effect``, with a result in %0."""
    ins = [(constraint(t), n) for t, n in named(parameters)]
    kind = "u32" if returns == "bool" else returns
    body = asm(ptx, [("=" + constraint(kind), "r")], ins, memory=True)
    device = f"{kind} r; {body} return r{' != 0' if returns == 'bool' else ''};"
    return Helper(name, family, returns, parameters, device, f"return {host};", isa, **more)


def registers(count: int, first: int = 0) -> str:
    """``{%2, %3, ...}``"""
    return "{" + ", ".join(f"%{first + i}" for i in range(count)) + "}"


def elements(array: str, count: int, letter: str) -> list[tuple[str, str]]:
    """Operands for the first ``count`` elements of an array."""
    return [(letter, f"{array}[{i}]") for i in range(count)]
