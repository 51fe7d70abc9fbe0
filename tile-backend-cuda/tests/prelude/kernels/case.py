"""One kernel over the named helpers with its inputs and the results that numpy expects; runs under the emulator or on a device."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tile_backend_cuda.prelude import emulate
from tile_backend_cuda.prelude.tensor_map import TensorMap
from tile_core.testing.machine import Report


@dataclass
class Case:
    """``expected`` maps positions of arguments to arrays; ``relative`` is the error allowed (0: to the bit)."""

    name: str
    text: str
    arguments: list[Any]
    expected: dict[int, np.ndarray]
    threads: int | tuple[int, ...] = 32
    grid: int | tuple[int, ...] = 1
    shared: int = 0
    cluster: int = 1
    arch: str = "sm_90a"
    relative: float = 0.0
    absolute: float = 0.0
    entry: str = "k"
    modes: tuple[str, ...] = ("early", "late", "random")
    tags: dict[str, Any] = field(default_factory=dict)

    def emulated(
        self, mode: str = "late", seed: int = 0, text: str | None = None
    ) -> tuple[Report, list[Any]]:
        """The report, and the arguments as the run left them (the case's own arrays stay as they are)."""
        copies: dict[int, np.ndarray] = {}

        def copy(a: np.ndarray) -> np.ndarray:
            return copies.setdefault(id(a), a.copy())

        given: list[Any] = []
        packed: list[Any] = []
        for a in self.arguments:
            if isinstance(a, TensorMap):
                moved = TensorMap(copy(a.array), a.box, a.swizzle, a.steps, a.nan, a.name)
                given.append(moved.array)
                packed.append(moved.packed())
            else:
                given.append(copy(a) if isinstance(a, np.ndarray) else a)
                packed.append(given[-1])
        report = emulate.run(
            text or self.text,
            self.entry,
            packed,
            grid=self.grid,
            threads=self.threads,
            shared_bytes=self.shared,
            cluster=self.cluster,
            mode=mode,
            seed=seed,
        )
        return report, given

    def wrong(self, results: list[Any]) -> str:
        """What differs from the expectation; empty if nothing does."""
        for at, wanted in self.expected.items():
            if problem := difference(results[at], wanted, self.relative, self.absolute):
                return f"{self.name}: argument {at}: {problem}"
        return ""


def difference(got: np.ndarray, wanted: np.ndarray, relative: float, absolute: float) -> str:
    """Empty if equal to the bit (``relative`` 0), or near enough."""
    got, wanted = got.reshape(-1), wanted.reshape(-1)
    if not relative and not absolute:
        bad = np.flatnonzero(got.view(np.uint8) != wanted.view(np.uint8)) // got.itemsize
    else:
        x, y = got.astype(np.float64), wanted.astype(np.float64)
        near = np.abs(x - y) <= absolute + relative * np.abs(y)
        bad = np.flatnonzero(~(near | (np.isnan(x) & np.isnan(y)) | (x == y)))
    if not len(bad):
        return ""
    i = bad[0]
    return f"{len(np.unique(bad))} of {got.size} differ, the first at {i}: {got[i]} instead of {wanted[i]}"


def kernel(parameters: str, body: str) -> str:
    """A kernel ``k`` with these parameters and this body, which knows ``t``, the thread's number."""
    return f'extern "C" __global__ void k({parameters}) {{\n  const int t = threadIdx.x;\n{body}\n}}\n'
