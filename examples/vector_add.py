"""Vector addition in the eager style: tensors are declared in the kernel, and calling it runs it."""

from __future__ import annotations

import numpy as np

import tile_core as tile
import tile_core.language as T


@tile.jit
def add(A, B, block=1024):
    N = T.const("N")
    A: T.Tensor((N,), "float32")
    B: T.Tensor((N,), "float32")
    C = T.empty((N,), "float32")
    with T.Kernel(T.ceildiv(N, block), threads=128) as bx:
        for i in T.Parallel(block):
            if bx * block + i < N:
                C[bx * block + i] = A[bx * block + i] + B[bx * block + i]
    return C


def main() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 100_003)).astype(np.float32)
    c = add(a, b)
    print("largest error", np.abs(c - (a + b)).max())


if __name__ == "__main__":
    main()
