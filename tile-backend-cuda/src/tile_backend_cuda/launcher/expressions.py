"""Extents of a launch specification as code of a small stack machine, which the native launcher and this module both run.

Names are slots: dimensions, integer parameters, and tensors, which stand for their address.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence

Code = tuple[int, ...]  # pairs: operation, operand

# The numbers of sources/expression.h.
CONSTANT, SLOT = 0, 1
NEG, SELECT = 18, 19
STACK = 16


def _floordiv(a: int, b: int) -> int:
    return a // b


def _truncdiv(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _truncmod(a: int, b: int) -> int:
    return abs(a) % abs(b) * (1 if a >= 0 else -1)


BINARY: dict[int, Callable[[int, int], int]] = {
    2: operator.add,
    3: operator.sub,
    4: operator.mul,
    5: _floordiv,
    6: operator.mod,
    7: min,
    8: max,
    9: _truncdiv,
    10: _truncmod,
    11: operator.lt,
    12: operator.le,
    13: operator.gt,
    14: operator.ge,
    15: operator.eq,
    16: operator.ne,
    17: lambda a, b: int(bool(a) and bool(b)),
}

OPERATORS: dict[type, int] = {
    ast.Add: 2,
    ast.Sub: 3,
    ast.Mult: 4,
    ast.FloorDiv: 5,
    ast.Mod: 6,
    ast.Lt: 11,
    ast.LtE: 12,
    ast.Gt: 13,
    ast.GtE: 14,
    ast.Eq: 15,
    ast.NotEq: 16,
    ast.And: 17,
}
FUNCTIONS = {"min": 7, "max": 8, "truncdiv": 9, "truncmod": 10}
CASTS = ("int32", "int64")


def code(extent: int | str, slots: Mapping[str, int]) -> Code:
    """The code of a number or an expression.

    Raises:
        ValueError: it is no expression over the names of ``slots``, or nests too deep.
    """
    if isinstance(extent, int):
        return (CONSTANT, extent)
    tree = ast.parse(extent, mode="eval").body
    out = tuple(n for step in _steps(tree, slots, extent) for n in step)
    if _depth(out) > STACK:
        raise ValueError(f"{extent!r} nests too deep")
    return out


def _steps(node: ast.expr, slots: Mapping[str, int], text: str) -> Iterator[tuple[int, int]]:
    match node:
        case ast.Constant(value=int() as value):
            yield CONSTANT, int(value)
        case ast.Name(id=name) if name in slots:
            yield SLOT, slots[name]
        case ast.UnaryOp(op=ast.USub(), operand=a):
            yield from _steps(a, slots, text)
            yield NEG, 0
        case ast.BinOp(left=a, op=op, right=b) if type(op) in OPERATORS:
            yield from _folded(OPERATORS[type(op)], (a, b), slots, text)
        case ast.Compare(left=a, ops=[op], comparators=[b]) if type(op) in OPERATORS:
            yield from _folded(OPERATORS[type(op)], (a, b), slots, text)
        case ast.BoolOp(op=ast.And(), values=values):
            yield from _folded(OPERATORS[ast.And], values, slots, text)
        case ast.IfExp(test=test, body=a, orelse=b):
            for part in (test, a, b):
                yield from _steps(part, slots, text)
            yield SELECT, 0
        case ast.Call(func=ast.Name(id=name), args=[a]) if name in CASTS:
            yield from _steps(a, slots, text)
        case ast.Call(func=ast.Name(id=name), args=[_, _, *_] as given) if name in FUNCTIONS:
            yield from _folded(FUNCTIONS[name], given, slots, text)
        case _:
            raise ValueError(f"{text!r} is no expression over {', '.join(slots)}")


def _folded(
    operation: int, operands: Sequence[ast.expr], slots: Mapping[str, int], text: str
) -> Iterator[tuple[int, int]]:
    yield from _steps(operands[0], slots, text)
    for operand in operands[1:]:
        yield from _steps(operand, slots, text)
        yield operation, 0


def _depth(steps: Code) -> int:
    depth = most = 0
    for operation in steps[::2]:
        depth += {CONSTANT: 1, SLOT: 1, NEG: 0, SELECT: -2}.get(operation, -1)
        most = max(most, depth)
    return most


def value(steps: Code, slots: Sequence[int]) -> int:
    """What the code gives for these values of the slots. Raises ``ZeroDivisionError``."""
    stack: list[int] = []
    for operation, operand in zip(steps[::2], steps[1::2], strict=True):
        if operation == CONSTANT:
            stack.append(operand)
        elif operation == SLOT:
            stack.append(slots[operand])
        elif operation == NEG:
            stack.append(-stack.pop())
        elif operation == SELECT:
            otherwise, then, condition = stack.pop(), stack.pop(), stack.pop()
            stack.append(then if condition else otherwise)
        else:
            right, left = stack.pop(), stack.pop()
            stack.append(int(BINARY[operation](left, right)))
    return stack[0]
