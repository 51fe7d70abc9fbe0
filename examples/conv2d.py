"""2-D convolution, NHWC, as a matrix product whose operand is gathered from the image tile by tile."""

from __future__ import annotations

import numpy as np

import tile_core as tile
import tile_core.language as T

EXAMPLE = {"conv2d": {"N": 1, "C": 16, "H": 14, "W": 14, "F": 32, "R": 3}}


@tile.jit(out_idx=[-1])
def conv2d(
    N, C, H, W, F, R, stride=1, pad=1, dilation=1, block_M=64, block_N=32, block_K=32, dtype="float16"
):
    out_h = (H + 2 * pad - dilation * (R - 1) - 1) // stride + 1
    out_w = (W + 2 * pad - dilation * (R - 1) - 1) // stride + 1
    pixels, depth = N * out_h * out_w, R * R * C

    @T.prim_func
    def kernel(
        image: T.Tensor((N, H, W, C), dtype),
        weight: T.Tensor((R, R, C, F), dtype),
        out: T.Tensor((N, out_h, out_w, F), "float32"),
    ):
        with T.Kernel(T.ceildiv(F, block_N), T.ceildiv(pixels, block_M), threads=128) as (bx, by):
            gathered = T.alloc_shared((block_M, block_K), dtype)
            weights = T.alloc_shared((block_K, block_N), dtype)
            acc = T.alloc_fragment((block_M, block_N), "float32")
            weight_flat = T.reshape(weight, (depth, F))
            out_flat = T.reshape(out, (pixels, F))
            T.clear(acc)
            for ko in T.Pipelined(T.ceildiv(depth, block_K), num_stages=2):
                for i, j in T.Parallel(block_M, block_K):
                    m, k = by * block_M + i, ko * block_K + j
                    y = m % (out_h * out_w) // out_w * stride + k // C // R * dilation - pad
                    x = m % out_w * stride + k // C % R * dilation - pad
                    inside = (m < pixels) and (k < depth) and (y >= 0) and (y < H) and (x >= 0) and (x < W)
                    gathered[i, j] = T.if_then_else(inside, image[m // (out_h * out_w), y, x, k % C], 0)
                T.copy(weight_flat[ko * block_K, bx * block_N], weights)
                T.gemm(gathered, weights, acc)
            T.copy(acc, out_flat[by * block_M, bx * block_N])

    return kernel


def reference(
    image: np.ndarray, weight: np.ndarray, stride: int = 1, pad: int = 1, dilation: int = 1
) -> np.ndarray:
    image, weight = image.astype(np.float32), weight.astype(np.float32)
    r = weight.shape[0]
    padded = np.pad(image, ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    out_h = (padded.shape[1] - dilation * (r - 1) - 1) // stride + 1
    out_w = (padded.shape[2] - dilation * (r - 1) - 1) // stride + 1
    out = np.zeros((image.shape[0], out_h, out_w, weight.shape[3]), np.float32)
    for y in range(r):
        for x in range(r):
            rows = slice(y * dilation, y * dilation + out_h * stride, stride)
            columns = slice(x * dilation, x * dilation + out_w * stride, stride)
            out += padded[:, rows, columns] @ weight[y, x]
    return out


def main() -> None:
    rng = np.random.default_rng(0)
    sizes = EXAMPLE["conv2d"]
    image = rng.standard_normal((sizes["N"], sizes["H"], sizes["W"], sizes["C"])).astype(np.float16)
    weight = rng.standard_normal((sizes["R"], sizes["R"], sizes["C"], sizes["F"])).astype(np.float16)
    out = conv2d(**sizes)(image, weight)
    print("largest error", np.abs(out - reference(image, weight)).max())


if __name__ == "__main__":
    main()
