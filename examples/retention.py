"""Retention: linear attention in which each head forgets at a rate of its own."""

from __future__ import annotations

import linear_attention as linear
import numpy as np

import tile_core as tile

EXAMPLE = {"retention": {"batch": 1, "heads": 4, "seq": 256, "dim_k": 64, "dim_v": 64}}


@tile.jit(out_idx=[-1])
def retention(batch, heads, seq, dim_k, dim_v, reverse=False, **tiles):
    """``out[i] = sum over j <= i of 2 ** (rate[head] (i - j)) (Q[i] K[j]) V[j]``."""
    return linear.linear_attention.function(
        batch, heads, seq, dim_k, dim_v, decay=True, reverse=reverse, **tiles
    )


def rates(heads: int) -> np.ndarray:
    """Logarithms to base 2 of what each head keeps per step: 1 - 1/32, 1 - 1/64, ..."""
    return np.log2(1 - np.exp2(-5.0 - np.arange(heads))).astype(np.float32)


def reference(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, rate: np.ndarray, reverse: bool = False
) -> np.ndarray:
    return linear.reference(q, k, v, rate, reverse)


def main() -> None:
    rng = np.random.default_rng(0)
    s = EXAMPLE["retention"]
    q, k = rng.standard_normal((2, s["batch"], s["heads"], s["seq"], s["dim_k"])).astype(np.float16)
    v, d_out = rng.standard_normal((2, s["batch"], s["heads"], s["seq"], s["dim_v"])).astype(np.float16)
    rate = rates(s["heads"])
    out, wanted = retention(**s)(q, k, v, rate), reference(q, k, v, rate)
    print("forward: largest error", np.abs(out - wanted).max(), "of", np.abs(wanted).max())
    found = linear.gradients(q, k, v, d_out, rate)
    for name, got, wanted in zip("QKV", found, linear.gradients_reference(q, k, v, d_out, rate), strict=True):
        print(f"gradient of {name}: largest error", np.abs(got - wanted).max(), "of", np.abs(wanted).max())


if __name__ == "__main__":
    main()
