"""Annotations of kernel parameters: tensors, strided tensors, pointers and symbolic dimensions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from ..dtypes import DType, dtype
from ..errors import KernelError
from ..expr import Expr, Var, dim
from .several import is_tuple, several


class Tensor:
    """A tensor in global memory: ``T.Tensor((M, K), "float16")`` or ``T.Tensor[(M, K), T.float16]``.

    ``shape``: ints, ``T.dynamic`` dimensions and expressions over them. ``dtype``: a type of ``T``, a string, or a numpy or
    torch type (default float32). The tensor is contiguous in row-major order; see ``StridedTensor``. ``distinct``: no two of its
    elements are equal, as in an order; a fact that the compiler may use and need not check; the interpreter checks it.

    Raises:
        KernelError: no such type, or an extent that is no integer.
    """

    def __init__(
        self, shape: Any, dtype: Any = "float32", strides: Any = None, distinct: bool = False
    ) -> None:
        self.distinct = distinct
        self.shape: tuple[Any, ...] = _dims(shape)
        self.dtype: DType = _type(dtype)
        self.strides: tuple[Any, ...] | None = None if strides is None else _dims(strides)
        if self.strides is not None and len(self.strides) != len(self.shape):
            raise KernelError(f"{len(self.strides)} strides for {len(self.shape)} dimensions")

    def __class_getitem__(cls, item: Any) -> Tensor:
        return cls(*item) if is_tuple(item) and len(item) == 2 and _is_shape(item[0]) else cls(item)

    def __getitem__(self, index: Any) -> Any:
        raise KernelError("a tensor is indexed inside a kernel")

    def __setitem__(self, index: Any, value: Any) -> None:
        raise KernelError("a tensor is written inside a kernel")

    def __repr__(self) -> str:
        return f"T.Tensor({self.shape}, {self.dtype.name!r})"


Buffer = Tensor


def StridedTensor(shape: Any, strides: Any, dtype: Any = "float32") -> Tensor:
    """A tensor whose strides (in elements, ints or symbolic) are given; it need not be contiguous."""
    return Tensor(shape, dtype, strides)


@dataclass(frozen=True)
class Pointer:
    """Annotation of a raw pointer parameter. ``pointee`` None: untyped."""

    pointee: DType | None = None


def ptr(dtype: Any = None, storage_scope: str = "global") -> Pointer:
    """A raw pointer parameter, passed as an address (an int) or a tensor; use it with ``T.make_tensor``.

    Raises:
        KernelError: ``storage_scope`` is not ``global``.
    """
    if storage_scope != "global":
        raise KernelError(f"a pointer parameter points to global memory, not to {storage_scope!r}")
    return Pointer(None if dtype is None else _type(dtype))


def dynamic(names: str, dtype: Any = "int32") -> Any:
    """A dimension that is known when the kernel is called: ``T.dynamic("m")``; ``T.dynamic("m, n")`` gives two.

    Its value is taken from the tensors that are passed; two of one name are the same dimension.

    Raises:
        KernelError: a name that is no identifier, or a type that is no integer.
    """
    type = _type(dtype)
    if not type.is_integer:
        raise KernelError(f"a dimension is an integer, not {type}")
    found = [n for n in re.split(r"[,\s]+", names.strip()) if n]
    if bad := [n for n in found if not n.isidentifier()]:
        raise KernelError(f"{bad[0]!r} is no name of a dimension")
    dims = tuple(Var(n, type) for n in found)
    return dims[0] if len(dims) == 1 else dims


symbolic = dynamic


def _is_shape(item: Any) -> bool:
    return isinstance(item, (tuple, list, int, Expr))


def _dims(shape: Any) -> tuple[Any, ...]:
    sizes = tuple(dim(d) for d in several(shape))
    if bad := [d for d in sizes if isinstance(d, int) and d < 0]:
        raise KernelError(f"an extent is negative: {bad[0]}")
    return sizes


def _type(value: Any) -> DType:
    return dtype(value)
