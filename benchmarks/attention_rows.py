"""What benchmarks/attention.py measures: forward attention at 16k tokens, and how our kernels are made for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

TOKENS = 16384
HEADS = {128: 16, 64: 32}
SEQLENS = (1024, 2048, 4096, 8192, 16384)

# (head dimension, causal) -> name -> keywords of the kernel
VARIANTS: dict[tuple[int, bool], dict[str, dict[str, int]]] = {
    (128, False): {
        "m128n128": {"block_M": 128, "block_N": 128, "threads": 256},
        "m128n176": {"block_M": 128, "block_N": 176, "threads": 256},
    },
    (128, True): {"m128n128": {"block_M": 128, "block_N": 128, "threads": 256}},
    (64, False): {
        "m192n128": {"block_M": 192, "block_N": 128, "threads": 384},
        "m128n128": {"block_M": 128, "block_N": 128, "threads": 256},
    },
    (64, True): {
        "m192n128": {"block_M": 192, "block_N": 128, "threads": 384},
        "m128n128": {"block_M": 128, "block_N": 128, "threads": 256},
    },
}


@dataclass(frozen=True)
class Row:
    """One comparison: self-attention of as many sequences as make up ``TOKENS``."""

    dim: int
    causal: bool
    seqlen: int
    dtype: str

    @property
    def name(self) -> str:
        return f"d{self.dim}_{'causal' if self.causal else 'full'}_{self.seqlen}_{self.dtype}"

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Batch, heads, tokens, dimension."""
        return TOKENS // self.seqlen, HEADS[self.dim], self.seqlen, self.dim

    @property
    def operations(self) -> float:
        """Of both products; behind a causal mask half of them."""
        batch, heads, n, d = self.shape
        return 4.0 * batch * heads * n * n * d * (0.5 if self.causal else 1)

    def arguments(self) -> tuple[int, ...]:
        """Positional arguments of the kernel."""
        batch, heads, n, d = self.shape
        return batch, heads, n, n, d

    def keywords(self, variant: str) -> dict[str, Any]:
        return {"causal": self.causal, "dtype": self.dtype, **VARIANTS[self.dim, self.causal][variant]}


def rows() -> list[Row]:
    return [
        Row(dim, causal, n, dtype)
        for dtype in ("bfloat16", "float16")
        for dim, causal in VARIANTS
        for n in SEQLENS
    ]
