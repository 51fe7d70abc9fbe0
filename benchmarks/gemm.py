"""Matrix products against cuBLAS and Triton on a GPU, in one run, interleaved.

    python benchmarks/gemm.py dumps/gemm --json benchmarks/results/gemm_h200.json

The folder is made by ``gemm_make.py`` elsewhere. Needs torch for CUDA and Triton; neither TVM nor a compiler.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gemm_rows import Row, rows
from timing import Protocol, burst, geometric_mean, medians

GUESS = {"bfloat16": 7e14, "float16": 7e14, "float8_e4m3fn": 1.4e15, "int8": 1.2e15, "float32": 3.5e14}
L2 = 60e6
TOLERANCE = {"bfloat16": 4e-3, "float16": 1e-3, "float32": 2e-3, "int32": 0.0}


def inputs(torch: Any, row: Row, sets: int) -> list[tuple[Any, Any, Any]]:
    """Independent normal numbers; as many sets as it takes to leave the L2 cache."""
    out: list[tuple[Any, Any, Any]] = []
    for n in range(sets):
        generator = torch.Generator("cuda").manual_seed(n)
        a, b = (_matrix(torch, row.dtype, shape, generator) for shape in ((row.M, row.K), (row.N, row.K)))
        out.append((a, b, torch.empty(row.M, row.N, device="cuda", dtype=getattr(torch, row.out_dtype))))
    return out


def _matrix(torch: Any, dtype: str, shape: tuple[int, int], generator: Any) -> Any:
    if dtype == "int8":
        return torch.randint(-128, 128, shape, device="cuda", dtype=torch.int8, generator=generator)
    return torch.randn(shape, device="cuda", generator=generator).to(getattr(torch, dtype))


def library(torch: Any, row: Row) -> dict[str, Callable[[Any], None]]:
    """The vendor's library, in every form that does this product."""
    one = torch.ones((), device="cuda")
    if row.dtype == "float8_e4m3fn":
        ones = torch.ones(row.M, 1, device="cuda"), torch.ones(1, row.N, device="cuda")

        def scaled(fast: bool, scales: tuple[Any, Any]) -> Callable[[Any], None]:
            return lambda d: torch._scaled_mm(
                d[0], d[1].t(), *scales, out_dtype=torch.bfloat16, use_fast_accum=fast, out=d[2]
            )

        return {
            "cublas": scaled(True, (one, one)),
            "cublas slow": scaled(False, (one, one)),
            "cublas rows": scaled(True, ones),
        }
    if row.dtype == "int8":
        return {"cublas": lambda d: torch._int_mm(d[0], d[1].t(), out=d[2])}
    return {"cublas": lambda d: torch.matmul(d[0], d[1].t(), out=d[2])}


def peers(row: Row, cores: int) -> dict[str, Callable[[Any], None]]:
    try:
        from triton_gemm import CONFIGS, contestant
    except ImportError as error:
        print("no Triton:", error)
        return {}
    return (
        {f"triton {'x'.join(map(str, c))}": contestant(c, cores) for c in CONFIGS}
        if row.dtype != "float32"
        else {}
    )


def reference(torch: Any, row: Row, a: Any, b: Any) -> Any:
    if row.dtype == "int8":
        return torch._int_mm(a, b.t())
    return a.float() @ b.float().t()


def error_of(torch: Any, row: Row, run: Callable[[Any], None], data: Any) -> float:
    """Relative error (Frobenius) of a contestant over the whole result."""
    a, b, c = data
    c.fill_(0 if row.out_dtype == "int32" else float("nan"))
    run(data)
    torch.cuda.synchronize()
    want, got = reference(torch, row, a, b).float(), c.float()
    return float((got - want).norm() / want.norm())


def measure(torch: Any, tile: Any, folder: Path, row: Row, protocol: Protocol) -> dict[str, Any]:
    sets = max(2, min(4, math.ceil(3e8 / row.bytes))) if row.bytes < 3e8 else 1
    data = inputs(torch, row, sets)
    cores = torch.cuda.get_device_properties(0).multi_processor_count
    ours: dict[str, Callable[[Any], None]] = {}
    for name in row.variants:
        path = folder / "bundles" / f"{row.name}.{name}"
        if path.exists():
            kernel = tile.load(path)
            ours[f"tile {name}"] = lambda d, k=kernel: k(*d)
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


def shown(row: Row, result: dict[str, Any]) -> str:
    found = medians(result["microseconds"])
    base = min(v for k, v in found.items() if k.startswith("cublas"))
    lines = [row.name]
    for name, t in sorted(found.items(), key=lambda p: p[1]):
        spread = max(result["microseconds"][name]) / t - 1
        lines.append(
            f"   {name:24} {t:9.2f} us {row.operations / t * 1e-6:8.1f} TFLOPS  {row.bytes / t * 1e-3:7.0f} GB/s  x{base / t:.3f}"
            f"  error {result['errors'][name]:.1e}  spread {spread:+.1%}"
        )
    return "\n".join(lines)


def summary(results: list[tuple[Row, dict[str, Any]]]) -> None:
    for table in dict.fromkeys(row.table for row, _ in results):
        ratios: dict[str, list[float]] = {}
        for row, result in results:
            if row.table != table:
                continue
            found = medians(result["microseconds"])
            base = min(v for k, v in found.items() if k.startswith("cublas"))
            for name, t in found.items():
                ratios.setdefault(name, []).append(base / t)
        for name, values in ratios.items():
            print(
                f"{table}: {name:24} geometric mean x{geometric_mean(values):.4f}, least x{min(values):.3f}, {len(values)} rows"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", default="", help="rows whose name contains this")
    parser.add_argument("--rounds", type=int, default=6)
    given = parser.parse_args()
    site = given.folder.resolve() / "site"
    for wheel in (given.folder / "wheels").glob("*.whl"):
        zipfile.ZipFile(wheel).extractall(site)
    sys.path.insert(0, str(site))
    import torch

    import tile_core as tile

    torch.backends.cuda.matmul.allow_tf32 = False
    protocol = Protocol(rounds=given.rounds)
    results: list[tuple[Row, dict[str, Any]]] = []
    for row in rows():
        if given.only not in row.name:
            continue
        result = measure(torch, tile, given.folder, row, protocol)
        results.append((row, result))
        print(shown(row, result), flush=True)
    summary(results)
    if given.json:
        about = {
            "command": " ".join(sys.argv),
            "device": torch.cuda.get_device_name(),
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "python": platform.python_version(),
            "protocol": vars(protocol) if hasattr(protocol, "__dict__") else str(protocol),
        }
        given.json.write_text(json.dumps({"about": about, "rows": [r for _, r in results]}, indent=1))


if __name__ == "__main__":
    main()
