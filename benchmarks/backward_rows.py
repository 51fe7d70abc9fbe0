"""What benchmarks/backward.py measures: the gradients of attention, and how our kernels are made for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

BATCH, HEADS, SEQLEN, DIM = 2, 16, 8192, 128

# name -> keywords of the kernel; the first is the one that counts, the others are measured too
VARIANTS: dict[str, dict[str, int]] = {
    "n128": {"block_M": 64, "block_N": 128, "threads": 256},
    "n64": {"block_M": 64, "block_N": 64, "threads": 128},
    "n128s3": {"block_M": 64, "block_N": 128, "threads": 256, "num_stages": 3},
}


@dataclass(frozen=True)
class Row:
    """One comparison."""

    causal: bool
    dtype: str

    @property
    def name(self) -> str:
        return f"d{DIM}_{'causal' if self.causal else 'full'}_{SEQLEN}_{self.dtype}"

    @property
    def operations(self) -> float:
        """Of the five products; behind a causal mask half of them."""
        return 10.0 * BATCH * HEADS * SEQLEN * SEQLEN * DIM * (0.5 if self.causal else 1)

    def arguments(self) -> tuple[int, ...]:
        """Positional arguments of the kernel."""
        return BATCH, HEADS, SEQLEN, SEQLEN, DIM

    def keywords(self, variant: str) -> dict[str, Any]:
        return {"causal": self.causal, "dtype": self.dtype, **VARIANTS[variant]}


def rows() -> list[Row]:
    return [Row(causal, dtype) for dtype in ("bfloat16", "float16") for causal in (False, True)]
