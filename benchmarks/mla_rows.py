"""What benchmarks/mla.py measures: decoding with multi-head latent attention, and how our kernel is made for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

HEADS, DIM, ROPE, PAGE = 128, 512, 64, 64
PROCESSORS = 128  # at least, of the devices of the target
BATCHES = (128, 64)
LENGTHS = (1024, 2048, 4096, 8192, 16384, 32768)
RAGGED = 512, 8192  # the lengths of a ragged batch lie between these

# form -> name -> keywords of the kernel
VARIANTS: dict[str, dict[str, dict[str, Any]]] = {
    "contiguous": {"pair": {}},
    "paged": {"pair": {}},
    "ragged": {"order": {"ordered": True}, "order_x2": {"ordered": True, "splits": 2}},
}


@dataclass(frozen=True)
class Row:
    """One comparison: one query token of each of ``batch`` sequences; ``form`` is a name in ``VARIANTS``."""

    form: str
    batch: int
    most: int
    dtype: str

    @property
    def name(self) -> str:
        return f"{self.form}_b{self.batch}_{self.most}_{self.dtype}"

    @property
    def lengths(self) -> list[int]:
        """Of the sequences: all ``most``, or evenly spread and shuffled by a stride that is prime to the batch."""
        if self.form != "ragged":
            return [self.most] * self.batch
        low, high = RAGGED
        at = [low + (high - low) * n // (self.batch - 1) for n in range(self.batch)]
        return [at[n * 37 % self.batch] for n in range(self.batch)]

    @property
    def chosen(self) -> str:
        """The variant that counts: ragged batches with fewer sequences than processors are split; others are measured too."""
        first, *split = VARIANTS[self.form]
        return split[0] if split and self.batch < PROCESSORS else first

    @property
    def operations(self) -> float:
        return 2.0 * HEADS * (DIM + ROPE + DIM) * sum(self.lengths)

    @property
    def bytes(self) -> int:
        """What must be read and written at least."""
        return 2 * ((DIM + ROPE) * sum(self.lengths) + self.batch * HEADS * (DIM + ROPE + DIM))

    def arguments(self) -> tuple[int, ...]:
        """Positional arguments of the kernel."""
        return self.batch, HEADS, self.most

    def keywords(self, variant: str) -> dict[str, Any]:
        page = {"page": PAGE} if self.form == "paged" else {}
        return {"dtype": self.dtype, **page, **VARIANTS[self.form][variant]}


def rows() -> list[Row]:
    out: list[Row] = []
    for dtype in ("bfloat16", "float16"):
        out += [Row(form, b, n, dtype) for form in ("contiguous", "paged") for b in BATCHES for n in LENGTHS]
        out += [Row("ragged", b, RAGGED[1], dtype) for b in BATCHES]
    return out
