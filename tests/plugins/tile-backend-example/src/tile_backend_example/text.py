"""The generated text: a tile program written out as Python, and the function that runs it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from enum import Enum
from typing import Any

from tile_core.backend import LaunchParam
from tile_core.dtypes import DType

HEAD = """import numpy as np
from tile_core.dtypes import dtype
from tile_core.expr import *
from tile_core.interpreter import run as interpret
from tile_core.program import *

PROGRAM = {program}


def run({parameters}):
    interpret(PROGRAM, [{arguments}])
"""


def literal(value: Any) -> str:
    """Python text that makes ``value`` again; spans are left out, so that the text depends on the kernel alone."""
    match value:
        case DType():
            return f"dtype({value.name!r})"
        case Enum():
            return f"{type(value).__name__}({value.value!r})"
        case tuple():
            return f"({''.join(literal(v) + ', ' for v in value)})"
        case float():
            return f"float({str(value)!r})"  # inf and nan have no literal of their own
        case str() | int() | None:
            return repr(value)
    told = [f for f in fields(value) if f.init and f.name != "span" and getattr(value, f.name) != f.default]
    return f"{type(value).__name__}({', '.join(f'{f.name}={literal(getattr(value, f.name))}' for f in told)})"


def launch_text(program: str, params: Sequence[LaunchParam]) -> str:
    """The module. ``params`` are those of the kernel, then its symbolic dimensions, which the shapes are written with."""
    arguments = ", ".join(_array(p) if p.kind == "tensor" else p.name for p in params if p.kind != "dim")
    return HEAD.format(program=program, parameters=", ".join(p.name for p in params), arguments=arguments)


def _array(p: LaunchParam) -> str:
    count = " * ".join(f"({d})" for d in p.shape) or "1"
    kind = f"dtype({p.dtype!r}).as_numpy()"
    shape = "".join(f"{d}, " for d in p.shape)
    return f"np.frombuffer(memory({p.name}, {count} * {kind}.itemsize), {kind}).reshape(({shape}))"
