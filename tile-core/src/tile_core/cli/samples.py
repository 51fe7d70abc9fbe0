"""Random tensors that fit a kernel."""

from __future__ import annotations

from typing import Any

from ..backend import LaunchSpec
from ..dtypes import dtype
from ..errors import KernelError
from ..runtime.binding import evaluate


def tensors(launch: LaunchSpec, dims: dict[str, int], seed: int = 0) -> list[Any]:
    """A numpy array or number for each parameter that a caller passes.

    Raises:
        KernelError: a symbolic dimension has no value in ``dims``, or a parameter is a pointer.
    """
    import numpy as np

    rng = np.random.default_rng(seed)
    out: list[Any] = []
    params = [p for p in launch.params if p.kind != "dim"]
    if missing := [p.name for p in launch.params if p.kind == "dim" and p.name not in dims]:
        raise KernelError(f"the dimension {missing[0]} has no value", help=f"give it: --dim {missing[0]}=128")
    for n, p in enumerate(params):
        if n in launch.outputs:
            continue
        if p.kind == "pointer":
            raise KernelError(f"{p.name} is a pointer: no value can be made up for it")
        if p.kind == "scalar":
            out.append(1)
            continue
        shape = tuple(evaluate(d, dims) for d in p.shape)
        out.append(values(rng, shape, p.dtype))
    return out


def values(rng: Any, shape: tuple[int, ...], type: str) -> Any:
    """Random values: N(0, 1) for floats, small integers for the others."""
    kind = dtype(type)
    if kind.is_float:
        return rng.standard_normal(shape).astype("float32").astype(kind.as_numpy())
    low = -4 if kind.kind == "int" else 0
    return rng.integers(low, 2 if kind.bits < 4 else 5, shape).astype(kind.as_numpy())
