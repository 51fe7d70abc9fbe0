"""What benchmarks/attention.py measures: forward attention at 16k tokens, and how our kernels are made for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

TOKENS = 16384
HEADS = {128: 16, 64: 32}
SEQLENS = (1024, 2048, 4096, 8192, 16384)

# (head dimension, causal) -> name -> keywords of the kernel; the first is for short sequences, the last for those longer than LAST
VARIANTS: dict[tuple[int, bool], dict[str, dict[str, int]]] = {
    (128, False): {
        "m128n128": {"block_M": 128, "block_N": 128, "threads": 256},
        "m128n176": {"block_M": 128, "block_N": 176, "threads": 256},
    },
    (128, True): {
        "m128n128": {"block_M": 128, "block_N": 128, "threads": 256},
        "m128n160": {"block_M": 128, "block_N": 160, "threads": 256},
    },
    (64, False): {"m192n128": {"block_M": 192, "block_N": 128, "threads": 384, "num_stages": 3}},
    (64, True): {
        "m128n128": {"block_M": 128, "block_N": 128, "threads": 256, "num_stages": 3},
        "m192n112": {"block_M": 192, "block_N": 112, "threads": 384, "num_stages": 3},
    },
}
LAST = {(128, False): 4096, (128, True): 8192, (64, False): 0, (64, True): 2048}


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

    @property
    def chosen(self) -> str:
        """The variant that counts."""
        names = list(VARIANTS[self.dim, self.causal])
        return names[-1 if self.seqlen > LAST[self.dim, self.causal] else 0]

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
