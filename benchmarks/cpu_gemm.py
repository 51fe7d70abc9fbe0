"""Matrix products of the ``cpu`` target against numpy's, on the same cores in the same process.

python benchmarks/cpu_gemm.py [--size 1024] [--dtype float32] [--rounds 30] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

# Some machines pin OpenBLAS to an old kernel by these; the comparison is with the one made for this processor.
for _name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
    os.environ.pop(_name, None)

import numpy as np
from about import describe

import tile_core as tile
import tile_core.language as T
from tile_core.dtypes import dtype

BLOCKS = ((64, 64, 64), (128, 128, 32), (128, 128, 128), (128, 256, 64), (256, 128, 64), (256, 256, 128))


@tile.jit(target="cpu")
def gemm(size, block_M, block_N, block_K, type="float32"):
    @T.prim_func
    def kernel(
        A: T.Tensor((size, size), type), B: T.Tensor((size, size), type), C: T.Tensor((size, size), type)
    ):
        with T.Kernel(T.ceildiv(size, block_N), T.ceildiv(size, block_M), threads=128) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), type)
            B_shared = T.alloc_shared((block_K, block_N), type)
            acc = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(acc)
            for k in T.Pipelined(T.ceildiv(size, block_K), num_stages=2):
                T.copy(A[by * block_M, k * block_K], A_shared)
                T.copy(B[k * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, acc)
            T.copy(acc, C[by * block_M, bx * block_N])

    return kernel


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--size", type=int, default=1024)
    options.add_argument("--dtype", default="float32")
    options.add_argument("--rounds", type=int, default=30, help="samples of each, interleaved")
    options.add_argument("--json", help="write the figures to this file")
    given = options.parse_args()
    n = given.size
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((n, n)).astype(np.float32) for _ in range(2))
    x, y, c = (v.astype(dtype(given.dtype).as_numpy()) for v in (a, b, np.zeros_like(a)))
    reference = x.astype(np.float32) @ y.astype(np.float32)
    runs: dict[str, Callable[[], object]] = {"numpy float32": lambda: a @ b}
    for blocks in BLOCKS:
        kernel = gemm(n, *blocks, given.dtype)
        kernel(x, y, c)
        error = float(np.abs(c.astype(np.float32) - reference).max())
        if error > 1e-2 * float(np.abs(reference).max()):
            raise SystemExit(f"{blocks}: the result differs from numpy's by {error}")
        runs[f"tile {blocks}"] = partial(kernel, x, y, c)
    found = tile.compare(runs, rounds=given.rounds)
    rows = [
        {
            "what": name,
            "median_ms": s.median,
            "gflops": 2 * n**3 / s.median / 1e6,
            "of_numpy": found.ratio(name),
        }
        for name, s in found.samples.items()
    ]
    print(f"{given.dtype} {n}x{n}x{n}, medians of {given.rounds} interleaved samples")
    for row in rows:
        print(
            f"{row['what']:24} {row['median_ms']:8.2f} ms {row['gflops']:8.1f} GFLOP/s  {row['of_numpy']:5.2f} x numpy"
        )
    if given.json:
        about = describe(" ".join(("python", *sys.argv)))
        Path(given.json).write_text(json.dumps({**about, "rows": rows}, indent=1) + "\n", encoding="utf8")


if __name__ == "__main__":
    main()
