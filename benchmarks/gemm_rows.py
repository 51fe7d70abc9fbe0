"""What benchmarks/gemm.py measures: the rows of each table, and how our kernel is made for each of them."""

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
SMALL = ((8192, 8192), (28672, 8192), (8192, 28672))  # N, K
SIZE = {"bfloat16": 2, "float16": 2, "float8_e4m3fn": 1, "int8": 1, "float32": 4, "int32": 4}
GROUPS = (1500, 700, 0, 2900, 128, 1024, 1, 1939)  # rows of each group, 8192 in all


@dataclass(frozen=True)
class Row:
    """One comparison: ``kernel`` is a name in ``kernels``; ``form`` says what the operands are (see ``gemm_data``).

    ``variants``: name -> keywords of the kernel; the first is the one that counts, the others are measured beside it.
    """

    table: str
    M: int
    N: int
    K: int
    dtype: str = "bfloat16"
    out_dtype: str = "bfloat16"
    kernel: str = "gemm"
    form: str = "nt"
    batch: int = 1
    variants: dict[str, dict[str, Any]] = field(default_factory=dict[str, "dict[str, Any]"])

    @property
    def name(self) -> str:
        many = f"{self.batch}x" if self.batch > 1 else ""
        return f"{self.table}_{self.dtype}_{self.form}_{many}{self.M}x{self.N}x{self.K}"

    @property
    def operations(self) -> float:
        return 2.0 * self.batch * self.M * self.N * self.K

    @property
    def bytes(self) -> int:
        """What must be read and written at least."""
        weights = len(GROUPS) if self.form == "grouped" else self.batch
        inputs = (self.batch * self.M * self.K + weights * self.N * self.K) * SIZE[self.dtype]
        return inputs + self.batch * self.M * self.N * SIZE[self.out_dtype]

    def made_by(self, variant: str) -> str:
        """The name of the kernel of a variant."""
        return self.variants[variant].get("kernel", self.kernel)

    def arguments(self) -> tuple[Any, ...]:
        """Positional arguments of the kernel."""
        match self.form:
            case "batched":
                return (self.batch, self.M, self.N, self.K)
            case "grouped":
                return (self.M, self.N, self.K, len(GROUPS), sum(-(-g // 128) for g in GROUPS))
            case "nn" | "tn" | "tt":
                return (self.M, self.N, self.K, self.form[0] == "t", self.form[1] == "t")
            case _:
                return (self.M, self.N, self.K)

    def keywords(self, variant: str) -> dict[str, Any]:
        own = {k: v for k, v in self.variants[variant].items() if k != "kernel"}
        return (
            {"dtype": self.dtype}
            | own
            | ({"out_dtype": self.out_dtype} if self.made_by(variant) == "gemm" else {})
        )


STAGES = {"s4": {"num_stages": 4}}


CORES = 132


def _small(m: int, n: int, k: int) -> dict[str, dict[str, Any]]:
    """Few rows: long steps of K, which begin at different places in each block. Rules found on an H200, fixed before the run."""
    if m <= 16:
        long = {"block_M": 16, "block_K": 512, "num_stages": 2, "spread": 3}
        deep = {"block_M": 16, "block_K": 256, "num_stages": 5, "spread": 3}
        broad = {"block_M": 16, "block_N": 128, "block_K": 64, "num_stages": 10}
        if n > 64 * CORES:  # several waves
            return {"n128": broad, "k256": deep}
        if m == 1 and k > n:
            return {"n32": {**deep, "block_N": 32, "num_stages": 4}, "k256": deep}
        return {"k512": long, "k256": deep}
    tall = {
        "kernel": "spread_gemm",
        "block_M": 64,
        "block_N": 128,
        "block_K": 64,
        "num_stages": 8,
        "threads": 128,
        "spread": 1,
    }
    # one wave of tiles just narrow enough to give every core one
    width = -(-n // CORES // 32) * 32
    wide = {"kernel": "gemm", "block_N": width, "num_stages": min(8, 210000 // ((128 + width) * 128))}
    return {"tall": tall, "wide": wide} if 2 * n <= 128 * CORES else {"wide": wide, "tall": tall}


def rows() -> list[Row]:
    out = [
        Row("big", m, n, k, dtype, dtype, variants=STAGES)
        for dtype in ("bfloat16", "float16")
        for m, n, k in BIG
    ]
    eight = {name: {**v, "block_K": 128} for name, v in STAGES.items()}
    out.append(Row("fp8", 8192, 8192, 8192, "float8_e4m3fn", "bfloat16", variants=eight))
    short = {name: {**v, "block_K": 32} for name, v in STAGES.items()}
    out.append(Row("tf32", 8192, 8192, 8192, "float32", "float32", variants=short))
    out.append(
        Row(
            "int8",
            8192,
            8192,
            8192,
            "int8",
            "int32",
            variants={n: {**v, "accum": "int32"} for n, v in eight.items()},
        )
    )
    out += [
        Row("stored", 8192, 8192, 8192, form=f, kernel="stored", variants=STAGES) for f in ("nn", "tn", "tt")
    ]
    out.append(Row("batched", 2048, 2048, 2048, form="batched", kernel="batched", batch=16, variants=STAGES))
    out.append(Row("grouped", 8192, 4096, 4096, form="grouped", kernel="grouped", variants=STAGES))
    out += [
        Row("small", m, n, k, kernel="small_m", variants=_small(m, n, k))
        for m in (1, 16, 128)
        for n, k in SMALL
    ]
    return out
