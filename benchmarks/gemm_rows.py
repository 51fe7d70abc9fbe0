"""What benchmarks/gemm.py measures: the shapes of each table, and how our kernel is made for each row."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

BIG = (
    (4096, 4096, 4096),
    (8192, 8192, 8192),
    (4096, 1024, 8192),
    (4096, 8192, 8192),
    (4096, 28672, 8192),
    (4096, 8192, 28672),
)


@dataclass(frozen=True)
class Row:
    """One comparison. ``variants``: name -> keywords of the kernel, each measured; the first is the one that counts."""

    table: str
    M: int
    N: int
    K: int
    dtype: str
    out_dtype: str
    variants: dict[str, dict[str, Any]] = field(default_factory=dict[str, "dict[str, Any]"])

    @property
    def name(self) -> str:
        return f"{self.table}_{self.dtype}_{self.M}x{self.N}x{self.K}"

    @property
    def operations(self) -> float:
        return 2.0 * self.M * self.N * self.K

    @property
    def bytes(self) -> int:
        size = {"bfloat16": 2, "float16": 2, "float8_e4m3fn": 1, "int8": 1, "float32": 4, "int32": 4}
        inputs = (self.M * self.K + self.N * self.K) * size[self.dtype]
        return inputs + self.M * self.N * size[self.out_dtype]


def rows() -> list[Row]:
    out: list[Row] = []
    for dtype in ("bfloat16", "float16"):
        for m, n, k in BIG:
            out.append(Row("big", m, n, k, dtype, dtype, {"s4": {"num_stages": 4}, "s3": {"num_stages": 3}}))
    out.append(
        Row(
            "fp8",
            8192,
            8192,
            8192,
            "float8_e4m3fn",
            "bfloat16",
            {"s4": {"num_stages": 4, "block_K": 128}, "s3": {"num_stages": 3, "block_K": 128}},
        )
    )
    return out
