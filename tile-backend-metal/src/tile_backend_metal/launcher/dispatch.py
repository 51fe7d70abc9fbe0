"""What a call passes to Metal: a launch specification and checked values in; per entry its grid and arguments out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from tile_core.backend import LaunchParam, LaunchSpec
from tile_core.dtypes import dtype
from tile_core.errors import ArgumentError
from tile_core.runtime.arguments import is_tensor
from tile_core.runtime.binding import evaluate

MOST = 2**32 - 1  # threads along one dimension of a grid: positions are uint


@dataclass(frozen=True, slots=True)
class Number:
    """A scalar or dimension: its bytes as the kernel's `constant` reference reads them."""

    bytes: bytes

    @property
    def bits(self) -> int:
        """As a signed number of 64 bits whose low bytes are those of the value."""
        return int.from_bytes(self.bytes.ljust(8, b"\0"), "little", signed=True)


@dataclass(frozen=True, slots=True, eq=False)
class Workspace:
    """Memory that the launcher allocates for the call. Two of one size are not the same."""

    bytes: int


@dataclass(frozen=True, slots=True)
class Dispatch:
    """One kernel function: blocks in x, y, z, threads of a block, and arguments by buffer index: tensors or of the above."""

    entry: str
    grid: tuple[int, int, int]
    threads: int
    arguments: tuple[Any, ...]

    @property
    def all_threads(self) -> tuple[int, int, int]:
        x, y, z = self.grid
        return x * self.threads, y, z


def dispatches(spec: LaunchSpec, values: Sequence[Any], grids: Sequence[tuple[int, ...]]) -> list[Dispatch]:
    """Those entries whose grid is not empty, in order.

    Raises:
        ArgumentError: a grid is larger than Metal runs.
    """
    numbers = {p.name: v for p, v in zip(spec.params, values, strict=True) if p.kind in ("dim", "scalar")}
    given: dict[str, Any] = {
        p.name: v if p.kind == "tensor" or is_tensor(v) else _number(p, v)
        for p, v in zip(spec.params, values, strict=True)
    }
    given |= _workspaces(spec, numbers)
    out: list[Dispatch] = []
    for (entry, _, threads), grid in zip(spec.entries, grids, strict=True):
        if 0 in grid:
            continue
        x, y, z = (*grid, 1, 1)[:3]
        one = Dispatch(
            entry, (x, y, z), prod(threads), tuple(given[n] for n in spec.extra["parameters"][entry])
        )
        if max(one.all_threads) > MOST:
            raise ArgumentError(
                f"{entry} has a grid of {x} x {y} x {z} blocks of {one.threads} threads",
                why=f"Metal counts at most {MOST} threads along one dimension",
                help="use larger tiles",
            )
        out.append(one)
    return out


def _workspaces(spec: LaunchSpec, numbers: Mapping[str, int | float]) -> dict[str, Workspace]:
    rows = spec.extra.get("workspaces", ())
    return {
        f"workspace{n}": Workspace(max(1, prod(evaluate(d, numbers) for d in shape)) * size)
        for n, (shape, size) in enumerate(rows)
    }


def _number(p: LaunchParam, value: int | float) -> Number:
    if p.kind == "pointer":
        raise ArgumentError(
            f"{p.name} is an address, and Metal passes none to a kernel", help="pass a tensor for it"
        )
    return Number(np.array(value).astype(dtype(p.dtype).as_numpy()).tobytes())
