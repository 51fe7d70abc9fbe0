"""Matrix products as a user writes them, of any types, transposes and tiles; and what they give under the emulator."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import ml_dtypes
import numpy as np

import tile_core as tile
import tile_core.language as T
from tile_backend_cuda.backend import CudaBackend
from tile_backend_cuda.prelude import emulate
from tile_core.backend import Source
from tile_core.hardware import Target, TargetInfo
from tile_core.inference.plan import TilePlan
from tile_core.runtime.pipeline import make_plan


@dataclass(frozen=True)
class Product:
    """``C = A B`` of m x n x k with blocks of ``tile``. ``a_t``: A is stored (k, m); ``b_t``: B is stored (n, k)."""

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

    def __str__(self) -> str:
        stored = "nt"[self.a_t] + "nt"[self.b_t]
        sizes = f"{self.m}x{self.n}x{self.k}"
        blocks = "x".join(map(str, self.tile))
        return (
            f"{self.dtype}-{self.out}-{stored}-{sizes}-by-{blocks}-{self.threads}"
            + "-symbolic" * self.symbolic
        )


def numpy_type(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name, name))


@tile.jit
def product(p: Product):
    M, N, K = (T.dynamic("M"), T.dynamic("N"), T.dynamic("K")) if p.symbolic else (p.m, p.n, p.k)
    bm, bn, bk = p.tile
    a_shape, b_shape = (K, M) if p.a_t else (M, K), (N, K) if p.b_t else (K, N)

    @T.prim_func
    def kernel(A: T.Tensor(a_shape, p.dtype), B: T.Tensor(b_shape, p.dtype), C: T.Tensor((M, N), p.out)):
        with T.Kernel(T.ceildiv(N, bn), T.ceildiv(M, bm), threads=p.threads) as (bx, by):
            a = T.alloc_shared((bk, bm) if p.a_t else (bm, bk), p.dtype)
            b = T.alloc_shared((bn, bk) if p.b_t else (bk, bn), p.dtype)
            c = T.alloc_fragment((bm, bn), p.accumulator)
            T.clear(c)
            for ko in T.Pipelined(T.ceildiv(K, bk), num_stages=p.stages):
                if p.a_t:
                    T.copy(A[ko * bk, by * bm], a)
                else:
                    T.copy(A[by * bm, ko * bk], a)
                if p.b_t:
                    T.copy(B[bx * bn, ko * bk], b)
                else:
                    T.copy(B[ko * bk, bx * bn], b)
                T.gemm(a, b, c, transpose_A=p.a_t, transpose_B=p.b_t)
            T.copy(c, C[by * bm, bx * bn])

    return kernel


def info(arch: str, cores: int = 3) -> TargetInfo:
    """The architecture with few cores, so that small problems already give a block several tiles."""
    return dataclasses.replace(CudaBackend().info(Target("cuda", arch)), cores=cores)


def compiled(p: Product, arch: str = "sm_90a", cores: int = 3) -> tuple[TilePlan, Source]:
    where = info(arch, cores)
    plan = make_plan(product(p).program, where)
    return plan, CudaBackend().codegen(where).emit(plan)


def inputs(p: Product) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A, B and an untouched C; small integers, so that any order of sums is exact."""
    rng = np.random.default_rng(p.m * 7 + p.n * 3 + p.k)
    a = rng.integers(-4, 5, (p.k, p.m) if p.a_t else (p.m, p.k)).astype(numpy_type(p.dtype))
    b = rng.integers(-4, 5, (p.n, p.k) if p.b_t else (p.k, p.n)).astype(numpy_type(p.dtype))
    out = numpy_type(p.out)
    return a, b, np.full((p.m, p.n), 77, out)


def wanted(p: Product, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    x, y = a.astype(np.float64), b.astype(np.float64)
    exact = (x.T if p.a_t else x) @ (y.T if p.b_t else y)
    return exact.astype(np.float32).astype(numpy_type(p.out)).astype(np.float64)


def faults(p: Product, source: Source, mode: str, seed: int = 0) -> str:
    """What the emulator reports or the result has wrong; "" if all is well."""
    a, b, c = inputs(p)
    reports = emulate.run_all(source, [a, b, c], {"M": p.m, "N": p.n, "K": p.k}, mode=mode, seed=seed)
    found = [str(r) for r in reports if not r.clean]
    if found:
        return "\n".join(found)
    wrong = np.argwhere(c.astype(np.float64) != wanted(p, a, b))
    return f"{len(wrong)} elements are wrong, the first is {tuple(wrong[0])}" if len(wrong) else ""
