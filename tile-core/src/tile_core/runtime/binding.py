"""Check the arguments of a call against a launch specification, and compute what the launcher needs."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType
from typing import Any

from ..backend import LaunchParam, LaunchSpec
from ..dtypes import dtype
from ..errors import ArgumentError
from ..expr import row_major
from .arguments import TensorView, is_tensor, view


@dataclass(frozen=True)
class Bound:
    """One call: values in the order of the specification, extents of the grids, and the values of dimensions."""

    values: tuple[int | float, ...]
    grids: tuple[tuple[int, ...], ...]
    dims: Mapping[str, int]

    @property
    def empty(self) -> bool:
        """Whether no block of any launch runs."""
        return all(0 in g for g in self.grids)


ALLOWED = (
    ast.Expression,
    ast.BinOp,
    ast.UnaryOp,
    ast.USub,
    ast.Constant,
    ast.Name,
    ast.Load,
    ast.Add,
    ast.Sub,
    ast.Mult,
    ast.FloorDiv,
    ast.Mod,
    ast.Call,
    ast.Compare,
    ast.IfExp,
    ast.Lt,
    ast.LtE,
    ast.Gt,
    ast.GtE,
    ast.Eq,
    ast.NotEq,
)


def _truncdiv(a: float, b: float) -> int:
    return int(abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1)


def _truncmod(a: float, b: float) -> float:
    return abs(a) % abs(b) * (1 if a >= 0 else -1)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "min": min,
    "max": max,
    "int32": int,
    "int64": int,
    "truncdiv": _truncdiv,
    "truncmod": _truncmod,
}


@lru_cache(maxsize=4096)
def _compiled(expression: str) -> CodeType:
    tree = ast.parse(expression, mode="eval")
    for node in ast.walk(tree):
        if not isinstance(node, ALLOWED):
            raise ValueError(f"{expression!r} is no expression over dimensions")
    return compile(tree, "<extent>", "eval")


def evaluate(extent: int | str, dims: Mapping[str, int | float]) -> int:
    """An extent of a launch specification for given dimensions."""
    if isinstance(extent, int):
        return extent
    if extent in dims:
        return int(dims[extent])
    return int(eval(_compiled(extent), {"__builtins__": {}, **FUNCTIONS}, dict(dims)))


def solve(tensors: Sequence[tuple[LaunchParam, tuple[int, ...]]]) -> dict[str, int]:
    """Values of the symbolic dimensions: first where a dimension stands alone, then by checking the rest.

    Raises:
        ArgumentError: a rank, an extent, or two tensors that disagree; the message names the argument.
    """
    dims: dict[str, int] = {}
    given: dict[str, str] = {}
    for p, shape in tensors:
        if len(shape) != len(p.shape):
            raise ArgumentError(
                f"{p.name} has {len(shape)} dimensions, the kernel takes {len(p.shape)}: {_shape(p.shape)}"
            )
        for n, (want, have) in enumerate(zip(p.shape, shape, strict=True)):
            if isinstance(want, str) and want.isidentifier():
                if dims.setdefault(want, have) != have:
                    raise ArgumentError(
                        f"dimension {n} of {p.name} is {have}, but {want} is {dims[want]} in {given[want]}"
                    )
                given.setdefault(want, p.name)
    for p, shape in tensors:
        for n, (want, have) in enumerate(zip(p.shape, shape, strict=True)):
            needed = want if isinstance(want, int) else _needed(want, dims, p)
            if needed != have:
                raise ArgumentError(
                    f"dimension {n} of {p.name} is {have}, the kernel takes {needed}: {_shape(p.shape)}",
                    help="shapes are fixed when the kernel is built; use T.dynamic for one that may change",
                )
    return dims


def _needed(want: str, dims: Mapping[str, int], p: LaunchParam) -> int:
    try:
        return evaluate(want, dims)
    except NameError as error:
        raise ArgumentError(
            f"a dimension of {p.name}, {want}, cannot be solved from the shapes of the tensors"
        ) from error


def _shape(shape: Sequence[int | str]) -> str:
    return f"({', '.join(map(str, shape))})"


def bind(launch: LaunchSpec, arguments: Sequence[Any], views: Sequence[TensorView | None]) -> Bound:
    """Check all arguments (outputs included) and compute pointers, numbers and grids. ``views``: of those that are tensors.

    Raises:
        ArgumentError: naming the argument and what is wrong with it.
    """
    tensors: list[tuple[LaunchParam, TensorView]] = []
    values: list[int | float] = []
    params = launch.params[: len(arguments)]
    for p, value, found in zip(params, arguments, views, strict=True):
        if p.kind != "tensor":
            values.append(_number(p, value))
            continue
        if found is None:
            found = view(value, p.name)  # raises: it is no tensor
        tensors.append((p, found))
        values.append(found.pointer)
    dims = {**_strides_of(tensors), **solve([(p, v.shape) for p, v in tensors])}
    first = tensors[0][1] if tensors else None
    for p, v in tensors:
        _check(p, v, dims, first)
    for p in launch.params[len(params) :]:
        if p.name not in dims:
            raise ArgumentError(f"no tensor gives the dimension {p.name}")
        values.append(_integer(p, dims[p.name]))
    known = {**{p.name: v for p, v in zip(launch.params, values, strict=True) if p.kind == "scalar"}, **dims}
    grids = tuple(tuple(max(0, evaluate(g, known)) for g in grid) for _, grid, _ in launch.entries)
    if bad := [g for grid in grids for g in grid if g >= 2**31]:
        raise ArgumentError(f"a grid extent is {bad[0]}, block numbers are int32")
    return Bound(tuple(values), grids, dims)


def _strides_of(tensors: Sequence[tuple[LaunchParam, TensorView]]) -> dict[str, int]:
    """Values of symbols that are the stride of a tensor."""
    found: dict[str, int] = {}
    for p, v in tensors:
        for want, have in zip(p.strides, v.strides or row_major(v.shape), strict=False):
            if isinstance(want, str) and want.isidentifier():
                found.setdefault(want, have)
    return found


def _check(p: LaunchParam, v: TensorView, dims: Mapping[str, int], first: TensorView | None) -> None:
    if v.dtype != p.dtype and not _same_storage(v.dtype, p.dtype):
        raise ArgumentError(
            f"{p.name} is {v.dtype}, the kernel takes {p.dtype}", help=f"convert it to {p.dtype}"
        )
    if first is not None and v.device != first.device and not (v.on_host and first.on_host):
        raise ArgumentError(
            f"{p.name} is on {v.device}, another argument on {first.device}", help="move them together"
        )
    if p.strides:
        have = v.strides or row_major(v.shape)
        for n, (want, stride, extent) in enumerate(zip(p.strides, have, v.shape, strict=True)):
            if want != "" and extent > 1 and evaluate(want, {**dims}) != stride:
                raise ArgumentError(
                    f"stride {n} of {p.name} is {stride}, the kernel takes {evaluate(want, dims)}"
                )
    elif not v.contiguous:
        raise ArgumentError(
            f"{p.name} is not contiguous: strides {v.strides}",
            help="pass .contiguous(), or declare it with T.StridedTensor",
        )
    if p.written and not v.writable:
        raise ArgumentError(f"{p.name} is written by the kernel, but it is read-only")
    if v.pointer % max(1, p.alignment) and 0 not in v.shape:
        raise ArgumentError(f"{p.name} is not aligned to {p.alignment} bytes")


# types that are stored alike: an array of the first may be passed for the second
SAME_STORAGE = {
    ("float32", "tfloat32"),
    ("int8", "int1"),
    ("uint8", "uint1"),
    ("float4_e2m1fn", "float4_e2m1_unpacked"),
}


def _same_storage(have: str, want: str) -> bool:
    return (have, want) in SAME_STORAGE


def _number(p: LaunchParam, value: Any) -> int | float:
    if p.kind == "pointer":
        return view(value, p.name).pointer if is_tensor(value) else _integer(p, value)
    value = value.item() if hasattr(value, "item") else value
    if dtype(p.dtype).is_float:
        if not isinstance(value, (int, float)):
            raise ArgumentError(f"{p.name} is {value!r}, a number is needed")
        return float(value)
    return _integer(p, value)


def _integer(p: LaunchParam, value: Any) -> int:
    if not isinstance(value, int):
        raise ArgumentError(f"{p.name} is {value!r}, an integer is needed")
    kind = dtype(p.dtype)
    if value not in kind.integers:
        wide = f'T.dynamic("{p.name}", "int64") is wider' if p.kind == "dim" and kind.bits < 64 else ""
        raise ArgumentError(f"{p.name} is {value}, which does not fit {p.dtype}", help=wide)
    return int(value)
