"""What benchmarks/mamba.py measures: chunk scan and chunk state of Mamba-2, and how our kernels are made for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

BATCH, HEADS, GROUPS, CHUNK, DIM, STATE = 8, 80, 1, 256, 64, 128
SEQLENS = (4096, 16384)

# name -> keywords of the kernel, and ``fast_math`` of the target; the first is the one that counts, the others are measured too
VARIANTS: dict[str, dict[str, dict[str, Any]]] = {
    "chunk_scan": {
        "m64n64s3": {"block_M": 64, "num_stages": 3},
        "m64n64": {"block_M": 64, "num_stages": 2},
        "m128n64": {"block_M": 128, "num_stages": 2, "threads": 256},
    },
    "chunk_state": {
        "k64": {"block_K": 64, "num_stages": 3},
        "k128": {"block_K": 128, "num_stages": 2},
    },
}


@dataclass(frozen=True)
class Row:
    """One comparison: ``kernel`` is a name in ``VARIANTS``."""

    kernel: str
    seqlen: int
    dtype: str = "float16"

    @property
    def name(self) -> str:
        return f"{self.kernel}_{self.dtype}_{self.seqlen}"

    @property
    def chunks(self) -> int:
        return -(-self.seqlen // CHUNK)

    @property
    def operations(self) -> float:
        """As others count them: of C B^T x only the half at and below the diagonal."""
        rows = 2.0 * BATCH * self.seqlen * HEADS
        state = rows * DIM * STATE
        return state if self.kernel == "chunk_state" else state + rows * CHUNK * DIM / 2

    @property
    def bytes(self) -> int:
        """What must be read and written at least."""
        rows = BATCH * self.seqlen
        steps = 2 * 4 * rows * HEADS
        states = 2 * BATCH * self.chunks * HEADS * DIM * STATE
        x, one = 2 * rows * HEADS * DIM, 2 * rows * GROUPS * STATE
        if self.kernel == "chunk_state":
            return x + one + steps + states
        return 2 * x + one + steps + states + rows * GROUPS * CHUNK

    def arguments(self) -> tuple[int, ...]:
        """Positional arguments of the kernel."""
        return BATCH, self.seqlen, HEADS, GROUPS, CHUNK, DIM, STATE

    def keywords(self, variant: str) -> dict[str, Any]:
        own = {k: v for k, v in VARIANTS[self.kernel][variant].items() if k != "fast_math"}
        return {"dtype": self.dtype, **own}

    def target(self, variant: str) -> str:
        fast = VARIANTS[self.kernel][variant].get("fast_math", False)
        return "cuda:sm_90a,fast_math=1" if fast else "cuda:sm_90a"


def rows() -> list[Row]:
    return [Row(kernel, seqlen) for kernel in VARIANTS for seqlen in SEQLENS]
