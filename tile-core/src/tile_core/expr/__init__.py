"""Scalar expressions of a kernel, and the buffers they read.

Takes Python operators and numbers, gives frozen nodes whose operands agree in type.
"""

from __future__ import annotations

from .make import (
    binary,
    bitcast,
    call,
    cast,
    ceildiv,
    const,
    dim,
    expr,
    maximum,
    minimum,
    select,
    shape_text,
    truth,
    unary,
)
from .nodes import Binary, Bitcast, Buffer, Call, Cast, Const, Expr, Load, Select, Space, Unary, Var
from .text import index_text, text
from .walk import children, loads, rebuilt, substitute, variables, walk

__all__ = [
    "Binary",
    "Bitcast",
    "Buffer",
    "Call",
    "Cast",
    "Const",
    "Expr",
    "Load",
    "Select",
    "Space",
    "Unary",
    "Var",
    "binary",
    "bitcast",
    "call",
    "cast",
    "ceildiv",
    "children",
    "const",
    "dim",
    "expr",
    "index_text",
    "loads",
    "maximum",
    "minimum",
    "rebuilt",
    "select",
    "shape_text",
    "substitute",
    "text",
    "truth",
    "unary",
    "variables",
    "walk",
]
