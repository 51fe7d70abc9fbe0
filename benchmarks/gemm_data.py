"""Operands, the vendor's library and the exact result of each row of benchmarks/gemm.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gemm_rows import GROUPS, Row

Run = Callable[[Any], None]
ROWS_OF_TILE = 128


def operands(torch: Any, row: Row, seed: int) -> tuple[Any, ...]:
    """A, B, an empty C, and what else the kernel takes: independent normal numbers (int8: all values alike)."""
    generator = torch.Generator("cuda").manual_seed(seed)
    a_shape, b_shape, c_shape = [row.M, row.K], [row.N, row.K], [row.M, row.N]
    if row.form[0] == "t":
        a_shape.reverse()
    if row.form in ("nn", "tn"):
        b_shape.reverse()
    if row.form == "batched":
        a_shape, b_shape, c_shape = ([row.batch, *s] for s in (a_shape, b_shape, c_shape))
    if row.form == "grouped":
        b_shape = [len(GROUPS), *b_shape]
    a, b = (_matrix(torch, row.dtype, s, generator) for s in (a_shape, b_shape))
    c = torch.empty(c_shape, device="cuda", dtype=getattr(torch, row.out_dtype))
    return (a, b, c, *(_tables(torch) if row.form == "grouped" else ()))


def _matrix(torch: Any, dtype: str, shape: list[int], generator: Any) -> Any:
    if dtype == "int8":
        return torch.randint(-128, 128, shape, device="cuda", dtype=torch.int8, generator=generator)
    return torch.randn(shape, device="cuda", generator=generator).to(getattr(torch, dtype))


def _tables(torch: Any) -> tuple[Any, ...]:
    """Group, first row and end of the group of each tile of rows."""
    found: list[tuple[int, int, int]] = []
    at = 0
    for g, size in enumerate(GROUPS):
        found += [(g, at + r, at + size) for r in range(0, size, ROWS_OF_TILE)]
        at += size
    return tuple(torch.tensor(x, device="cuda", dtype=torch.int32) for x in zip(*found, strict=True))


def library(torch: Any, row: Row) -> dict[str, Run]:
    """The vendor's library, in every form that does this product."""
    match row.form:
        case "batched":
            return {"cublas": lambda d: torch.bmm(d[0], d[1].transpose(1, 2), out=d[2])}
        case "grouped":
            return _grouped(torch)
        case "nn":
            return {"cublas": lambda d: torch.matmul(d[0], d[1], out=d[2])}
        case "tn":
            return {"cublas": lambda d: torch.matmul(d[0].t(), d[1], out=d[2])}
        case "tt":
            return {"cublas": lambda d: torch.matmul(d[0].t(), d[1].t(), out=d[2])}
        case _:
            return _plain(torch, row)


def _plain(torch: Any, row: Row) -> dict[str, Run]:
    if row.dtype == "int8":
        return {"cublas": lambda d: torch._int_mm(d[0], d[1].t(), out=d[2])}
    if row.dtype != "float8_e4m3fn":
        return {"cublas": lambda d: torch.matmul(d[0], d[1].t(), out=d[2])}
    one = torch.ones((), device="cuda")
    rows = torch.ones(row.M, 1, device="cuda"), torch.ones(1, row.N, device="cuda")

    def scaled(fast: bool, scales: tuple[Any, Any]) -> Run:
        return lambda d: torch._scaled_mm(
            d[0], d[1].t(), *scales, out_dtype=torch.bfloat16, use_fast_accum=fast, out=d[2]
        )

    return {
        "cublas": scaled(True, (one, one)),
        "cublas slow": scaled(False, (one, one)),
        "cublas rows": scaled(True, rows),
    }


def _grouped(torch: Any) -> dict[str, Run]:
    ends = torch.tensor(GROUPS, device="cuda").cumsum(0).to(torch.int32)

    def one_by_one(d: Any) -> None:
        at = 0
        for g, size in enumerate(GROUPS):
            if size:
                torch.matmul(d[0][at : at + size], d[1][g].t(), out=d[2][at : at + size])
            at += size

    def together(d: Any) -> None:
        d[2].copy_(torch._grouped_mm(d[0], d[1].transpose(1, 2), offs=ends))

    return {"cublas each": one_by_one, "torch grouped": together}


def exact(torch: Any, row: Row, data: Any) -> Any:
    """The result in float32 (int8: in int32)."""
    a, b = data[0], data[1]
    if row.dtype == "int8":
        return torch._int_mm(a, b.t())
    a, b = a.float(), b.float()
    match row.form:
        case "batched":
            return torch.bmm(a, b.transpose(1, 2))
        case "grouped":
            parts, at = [], 0
            for g, size in enumerate(GROUPS):
                parts.append(a[at : at + size] @ b[g].t())
                at += size
            return torch.cat(parts)
        case "nn":
            return a @ b
        case "tn":
            return a.t() @ b
        case "tt":
            return a.t() @ b.t()
        case _:
            return a @ b.t()
