"""What a running kernel tells the launcher: a failed assertion, and values to print.

The context is an array of 64-bit cells: 0 holds the number of the failed assertion (0: none), 1 the address of the
print function.
"""

from __future__ import annotations

from .writer import Function


def define(name: str, operation: str) -> Function | None:
    """``tile.fail(context, number)``, ``tile.failed(context)`` and ``tile.print(context, site, slot, bits)``."""
    match operation:
        case "fail":
            b = Function(name, "void", (("ptr", "context"), ("i64", "number")), attributes="noinline cold")
            b.effect("%old = cmpxchg ptr %context, i64 0, i64 %number seq_cst seq_cst")
            return b.give(None)
        case "failed":
            b = Function(name, "i1", (("ptr", "context"),))
            return b.give(b.emit("i64", "load atomic i64, ptr %context monotonic, align 8").compare("ne", 0))
        case "print":
            parameters = (("ptr", "context"), ("i64", "site"), ("i64", "slot"), ("i64", "bits"))
            b = Function(name, "void", parameters, attributes="noinline cold")
            b.effect("%cell = getelementptr inbounds i64, ptr %context, i64 1")
            b.effect("%address = load ptr, ptr %cell, align 8")
            b.effect("call void %address(i64 %site, i64 %slot, i64 %bits)")
            return b.give(None)
        case _:
            return None
