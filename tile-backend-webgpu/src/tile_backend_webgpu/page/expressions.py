"""Extents of a launch specification as data that a page evaluates: Python text in, nested lists out."""

from __future__ import annotations

import ast
from typing import Any

from tile_core.errors import InternalError

OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}
FUNCTIONS = ("min", "max", "truncdiv", "truncmod")
CONVERSIONS = ("int32", "int64")


def tree(extent: int | str) -> Any:
    """A number, a name, or ``[operator, operand, ...]``. Raises ``InternalError`` for what no extent has."""
    return extent if isinstance(extent, int) else _node(ast.parse(extent, mode="eval").body)


def _node(x: ast.AST) -> Any:
    match x:
        case ast.Constant(value=bool() | int() as value):
            return int(value)
        case ast.Name(id=name):
            return name
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return ["-", 0, _node(inner)]
        case ast.BinOp(left=a, op=op, right=b) if type(op) in OPERATORS:
            return [OPERATORS[type(op)], _node(a), _node(b)]
        case ast.Compare(left=a, ops=[op], comparators=[b]) if type(op) in OPERATORS:
            return [OPERATORS[type(op)], _node(a), _node(b)]
        case ast.IfExp(test=test, body=then, orelse=other):
            return ["?", _node(test), _node(then), _node(other)]
        case ast.Call(func=ast.Name(id=name), args=[inner]) if name in CONVERSIONS:
            return _node(inner)
        case ast.Call(func=ast.Name(id=name), args=args) if name in FUNCTIONS:
            return [name, *map(_node, args)]
        case _:
            raise InternalError(f"an extent has {ast.dump(x)}")
