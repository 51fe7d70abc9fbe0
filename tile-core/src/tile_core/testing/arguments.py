"""Arguments for a case: random arrays made from the kernel's program, and the comparison of two runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from ..dtypes import DType
from ..expr import Var
from ..program import Param
from .kernels import Case

Array = NDArray[Any]


def is_array(value: Any) -> TypeGuard[Array]:
    return isinstance(value, np.ndarray)


def made(case: Case, seed: int = 0) -> list[Any]:
    """An array or a number for each parameter; equal for equal seeds."""
    random = np.random.default_rng(seed)
    return [_argument(p, case, random) for p in case.program.params]


def copies(arguments: Sequence[Any]) -> list[Any]:
    return [np.copy(a) if is_array(a) else a for a in arguments]


def compare(case: Case, got: Sequence[Any], wanted: Sequence[Any]) -> None:
    """Raises ``AssertionError`` naming the parameter, the worst element and both of its values."""
    for p, a, b in zip(case.program.params, got, wanted, strict=True):
        if not is_array(b) or b.size == 0:
            continue
        exact = p.value.dtype.kind != "float"
        x, y = (v if exact else v.astype("float64") for v in (a, b))
        close = x == y if exact else np.isclose(x, y, rtol=case.rtol, atol=case.atol, equal_nan=True)
        if not close.all():
            # of the elements that are wrong, the first: where a pattern starts says more than where it peaks
            at = tuple(int(i) for i in np.argwhere(~close)[0])
            wrong = f"{int((~close).sum())} of {close.size} elements of {p.name} are wrong"
            raise AssertionError(
                f"{case.name}: {wrong}, first {p.name}{list(at)} = {a[at]}, the interpreter has {b[at]}"
            )


def _argument(p: Param, case: Case, random: np.random.Generator) -> Any:
    if p.tensor is None:
        return case.scalars[p.name]
    return _random(tuple(_size(d, case.dims) for d in p.tensor.shape), p.tensor.dtype, case, random)


def _size(d: Any, dims: Mapping[str, int]) -> int:
    return dims[d.name] if isinstance(d, Var) else d


def _random(shape: tuple[int, ...], dtype: DType, case: Case, random: np.random.Generator) -> Array:
    if dtype.kind == "float":
        return random.standard_normal(shape).astype(dtype.as_numpy())
    return random.integers(max(case.low, 0) if dtype.kind == "uint" else case.low, case.high, shape).astype(
        dtype.as_numpy()
    )
