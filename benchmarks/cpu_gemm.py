"""Matrix products of the ``cpu`` target against numpy's, on the same cores in the same process.

python benchmarks/cpu_gemm.py [--size 1024] [--dtype float32] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable

# Some machines pin OpenBLAS to an old kernel by these; the comparison is with the one made for this processor.
for _name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
    os.environ.pop(_name, None)

import numpy as np  # noqa: E402

import tile_core as tile  # noqa: E402
import tile_core.language as T  # noqa: E402
from tile_core.dtypes import dtype  # noqa: E402

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


def best(run: Callable[[], object], seconds: float = 1.0) -> float:
    """The shortest time of one call."""
    run()
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 3:
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return min(times)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--size", type=int, default=1024)
    options.add_argument("--dtype", default="float32")
    options.add_argument("--json", help="write the figures to this file")
    given = options.parse_args()
    n = given.size
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((n, n)).astype(np.float32) for _ in range(2))
    x, y, c = (v.astype(dtype(given.dtype).as_numpy()) for v in (a, b, np.zeros_like(a)))
    work = 2 * n**3 / 1e9
    rows = [{"what": "numpy float32", "gflops": work / best(lambda: a @ b)}]
    for blocks in BLOCKS:
        begin = time.perf_counter()
        kernel = gemm(n, *blocks, given.dtype)
        kernel(x, y, c)
        first = time.perf_counter() - begin
        error = float(np.abs(c.astype(np.float32) - x.astype(np.float32) @ y.astype(np.float32)).max())
        rate = work / best(lambda: kernel(x, y, c))  # noqa: B023  called at once
        rows.append({"what": f"tile {blocks}", "gflops": rate, "first call": first, "error": error})
    base = rows[0]["gflops"]
    for row in rows:
        more = f"  first call {row['first call']:.2f} s, error {row['error']:.1e}" if "error" in row else ""
        print(f"{row['what']:24} {row['gflops']:8.1f} GFLOP/s  {row['gflops'] / base:5.2f} x numpy{more}")
    if given.json:
        with open(given.json, "w", encoding="utf8") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
