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
    truth,
    unary,
)
from .nodes import (
    Binary,
    Bitcast,
    Buffer,
    Call,
    Cast,
    Const,
    Expr,
    Load,
    Select,
    Space,
    Unary,
    Var,
    row_major,
)
from .text import element_text, index_text, shape_text, text
from .walk import children, loads, reads, rebuilt, substitute, variables, walk

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
    "element_text",
    "expr",
    "index_text",
    "loads",
    "maximum",
    "minimum",
    "reads",
    "rebuilt",
    "row_major",
    "select",
    "shape_text",
    "substitute",
    "text",
    "truth",
    "unary",
    "variables",
    "walk",
]
