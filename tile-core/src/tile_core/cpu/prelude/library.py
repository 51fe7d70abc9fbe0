"""Finds the definition of each function that a module calls, with those it needs in turn."""

from __future__ import annotations

from collections.abc import Iterable

from ...errors import InternalError
from . import atomics, casts, mathematics, matrix, narrow, reductions, reports
from .writer import Function


def define(name: str, features: frozenset[str], vector_bytes: int) -> Function:
    """The function ``tile.<operation>[.<type>[.<number>...]]``. Raises ``InternalError`` if there is none."""
    _, operation, *rest = name.split(".")
    type_name = rest[0] if rest else ""
    numbers = [int(n) for n in rest[1:]]
    found = (
        reports.define(name, operation)
        or matrix.define(name, operation, type_name, numbers)
        or reductions.define(name, operation, type_name, vector_bytes)
        or narrow.define(name, operation, type_name, features)
        or atomics.define(name, operation, type_name)
        or casts.define(name, operation, type_name)
        or mathematics.define(name, operation, type_name)
    )
    if found is None:
        raise InternalError(f"the cpu target has no function {name!r}")
    return found


def collect(
    names: Iterable[str], features: frozenset[str], vector_bytes: int
) -> tuple[list[Function], dict[str, str]]:
    """Definitions of ``names`` and all they need, in name order; and the declarations of what those call."""
    found: dict[str, Function] = {}
    waiting = sorted(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = define(name, features, vector_bytes)
            waiting += found[name].needs
    functions = [found[n] for n in sorted(found)]
    declared = {name: text for f in functions for name, text in f.declared.items()}
    return functions, dict(sorted(declared.items()))
