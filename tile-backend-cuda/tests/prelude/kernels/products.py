"""Matrix products of any types, orientations and tiles; and what the emulator says of the code that is generated for them."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from placed import placed

import tile_core.language as T
from tile_backend_cuda.backend import CudaBackend
from tile_backend_cuda.prelude.emulate import CudaEmulator
from tile_core.backend import Source
from tile_core.hardware import Target
from tile_core.inference.plan import TilePlan
from tile_core.runtime.pipeline import make_plan
from tile_core.testing.kernels import gemm


@dataclass(frozen=True)
class Product:
    """``C = A B`` of m x n x k with blocks of ``tile``. ``a_t``: A is stored (k, m); ``b_t``: B is stored (n, k).

    ``cores``: few of them, so that small problems already give a block several tiles. ``places``: where A, B and the sums
    are if they are not looped over; then the product is added twice, or once if the sums are to ``clear``.
    """

    m: int
    n: int
    k: int
    tile: tuple[int, int, int]
    dtype: str = "float16"
    accumulator: str = "float32"
    out: str = "float16"
    a_t: bool = False
    b_t: bool = True
    stages: int = 3
    threads: int = 256
    symbolic: bool = False
    arch: str = "sm_90a"
    cores: int = 3
    places: tuple[str, str, str] | None = None
    clear: bool = False

    def __str__(self) -> str:
        stored = "nt"[self.a_t] + "nt"[self.b_t]
        sizes = f"{self.m}x{self.n}x{self.k}"
        blocks = "x".join(map(str, self.tile))
        more = "-symbolic" * self.symbolic
        return f"{self.dtype}-{self.out}-{stored}-{sizes}-by-{blocks}-{self.threads}{more}"

    @property
    def types(self) -> tuple[str, str, str]:
        return self.dtype, self.accumulator, self.out

    def kernel(self) -> Any:
        turned = {"transpose_a": self.a_t, "transpose_b": self.b_t}
        if self.places is not None:
            extents = self.m, self.n, self.k
            return placed(extents, self.types, self.places, self.threads, clear=self.clear, **turned)
        extents = T.dynamic("M, N, K") if self.symbolic else (self.m, self.n, self.k)
        return gemm(*extents, self.tile, self.types, threads=self.threads, stages=self.stages, **turned)


def numpy_type(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name, name))


def compiled(p: Product) -> tuple[TilePlan, Source]:
    """Raises ``Unsupported`` if the architecture has too little shared memory."""
    backend = CudaBackend()
    info = dataclasses.replace(backend.info(Target("cuda", p.arch)), cores=p.cores)
    plan = make_plan(p.kernel().program, info)
    return plan, backend.codegen(info).emit(plan)


def inputs(p: Product) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A, B and an untouched C; small integers, so that any order of sums is exact."""
    rng = np.random.default_rng(p.m * 7 + p.n * 3 + p.k)
    a = rng.integers(-4, 5, (p.k, p.m) if p.a_t else (p.m, p.k)).astype(numpy_type(p.dtype))
    b = rng.integers(-4, 5, (p.n, p.k) if p.b_t else (p.k, p.n)).astype(numpy_type(p.dtype))
    return a, b, np.full((p.m, p.n), 77, numpy_type(p.out))


def wanted(p: Product, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    x, y = a.astype(np.float64), b.astype(np.float64)
    exact = (x.T if p.a_t else x) @ (y.T if p.b_t else y)
    twice = 2 if p.places is not None and not p.clear else 1
    return (twice * exact).astype(numpy_type(p.out)).astype(np.float64)


def faults(p: Product, source: Source, mode: str, seed: int = 0) -> str:
    """What the emulator reports or the result has wrong; "" if all is well."""
    a, b, c = inputs(p)
    reports = CudaEmulator().run(source, [a, b, c], {"M": p.m, "N": p.n, "K": p.k}, mode=mode, seed=seed)
    found = [str(r) for r in reports if not r.clean]
    if found:
        return "\n".join(found)
    wrong = np.argwhere(c.astype(np.float64) != wanted(p, a, b))
    return f"{len(wrong)} elements are wrong, the first is {tuple(wrong[0])}" if len(wrong) else ""
