"""Matrix products against cuBLAS and Triton on a GPU, in one run, interleaved.

    python benchmarks/gemm.py dumps/gemm --json benchmarks/results/gemm_h200.json

The folder is made by ``gemm_make.py`` elsewhere. Needs torch for CUDA and Triton; neither TVM nor a compiler.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from comparison import script
from gemm_data import exact, library, operands
from gemm_rows import Row, rows
from timing import Protocol, burst, geometric_mean, medians

Run = Callable[[Any], None]
GUESS = {"bfloat16": 7e14, "float16": 7e14, "float8_e4m3fn": 1.4e15, "int8": 1.2e15, "float32": 3.5e14}
L2 = 60e6
TOLERANCE = {"bfloat16": 4e-3, "float16": 1e-3, "float32": 2e-3, "int32": 0.0}


def peers(row: Row, cores: int) -> dict[str, Run]:
    """Triton, and TileLang where it is installed, each with the configurations that suit the row."""
    if row.dtype not in ("bfloat16", "float16", "float8_e4m3fn") or row.form != "nt":
        return {}
    out: dict[str, Run] = {}
    try:
        import triton_gemm

        for c in triton_gemm.configurations(row.M):
            out[f"triton {'x'.join(map(str, c))}"] = triton_gemm.contestant(c, cores)
    except ImportError as error:
        print("no Triton:", error)
    if row.dtype == "float8_e4m3fn" or row.table not in ("small", "big"):
        return out
    try:
        import tilelang_gemm

        for c in tilelang_gemm.configurations(row.M):
            name = f"tilelang {'x'.join(map(str, c))}"
            out[name] = tilelang_gemm.contestant(c, row.M, row.N, row.K, row.dtype)
    except ImportError as error:
        print("no TileLang:", error)
    return out


def error_of(torch: Any, row: Row, run: Run, data: Any) -> float:
    """Relative error (Frobenius) of a contestant over the whole result."""
    c = data[2]
    c.fill_(0 if row.out_dtype == "int32" else float("nan"))
    run(data)
    torch.cuda.synchronize()
    torch.backends.cuda.matmul.allow_tf32 = False  # of the exact result; the contestants may round
    want, got = exact(torch, row, data).float(), c.float()
    torch.backends.cuda.matmul.allow_tf32 = True
    return float((got - want).norm() / want.norm())


def measure(torch: Any, tile: Any, folder: Path, row: Row, protocol: Protocol) -> dict[str, Any]:
    sets = max(2, min(4, math.ceil(3e8 / row.bytes))) if row.bytes < 3e8 else 1
    data = [operands(torch, row, seed) for seed in range(sets)]
    cores = torch.cuda.get_device_properties(0).multi_processor_count
    ours: dict[str, Run] = {}
    for path in sorted((folder / "bundles").glob(f"{row.name}.*")):
        kernel = tile.load(path)
        ours[f"tile {path.suffix[1:]}"] = lambda d, k=kernel: k(*d)
    contestants = {**library(torch, row), **peers(row, cores), **ours}
    errors: dict[str, float] = {}
    for name, run in list(contestants.items()):
        try:
            errors[name] = error_of(torch, row, run, data[0])
        except Exception as error:  # a peer that cannot do this row is left out of it, and said so
            print(f"  {name} left out: {type(error).__name__}: {str(error)[:200]}")
            del contestants[name]
    guess = max(row.operations / GUESS[row.dtype], row.bytes / 4e12)
    times = burst(contestants, data, guess, protocol)
    return {"row": row.name, "microseconds": times, "errors": errors}


def is_peer(name: str) -> bool:
    return not name.startswith("tile ")


def is_library(name: str) -> bool:
    return is_peer(name) and not name.startswith(("triton", "tilelang"))


def shown(row: Row, result: dict[str, Any]) -> str:
    """All contestants of a row, the fastest first; ratios to the library's best."""
    found = medians(result["microseconds"])
    base = min(v for k, v in found.items() if is_library(k))
    lines = [row.name]
    for name, t in sorted(found.items(), key=lambda p: p[1]):
        spread = max(result["microseconds"][name]) / t - 1
        rate = f"{row.operations / t * 1e-6:8.1f} TFLOPS  {row.bytes / t * 1e-3:7.0f} GB/s"
        error = result["errors"][name]
        lines.append(
            f"   {name:24} {t:9.2f} us {rate}  x{base / t:.3f}  error {error:.1e}  spread {spread:+.1%}"
        )
    return "\n".join(lines)


def summary(results: list[tuple[Row, dict[str, Any]]]) -> list[dict[str, Any]]:
    """For each table: the library's time over ours, and ours over the fastest peer's; ours is a row's first variant."""
    out: list[dict[str, Any]] = []
    for table in dict.fromkeys(row.table for row, _ in results):
        library: list[float] = []
        fastest: list[float] = []
        for row, result in results:
            found = medians(result["microseconds"])
            mine = found.get(f"tile {next(iter(row.variants))}")
            if row.table == table and mine is not None:
                library.append(min(v for k, v in found.items() if is_library(k)) / mine)
                fastest.append(mine / min(v for k, v in found.items() if is_peer(k)))
        if library:
            out.append(
                {
                    "table": table,
                    "rows": len(library),
                    "library_over_ours_geometric_mean": round(geometric_mean(library), 4),
                    "library_over_ours_least": round(min(library), 4),
                    "ours_over_fastest_peer_most": round(max(fastest), 4),
                }
            )
    return out


if __name__ == "__main__":
    script(__doc__, rows(), measure, shown, summary)
