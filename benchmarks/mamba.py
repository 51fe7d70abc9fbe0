"""Chunk scan and chunk state of Mamba-2 on an NVIDIA GPU: ours, and the Triton kernels of ``mamba_ssm`` where they are installed.

    python benchmarks/mamba.py dumps/mamba [--json FILE]

The folder is made by ``mamba_make.py`` elsewhere. Needs torch for CUDA; neither TVM nor a compiler.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from comparison import script
from mamba_data import exact, operands, peers
from mamba_rows import BATCH, VARIANTS, Row, rows
from soundness import refuse, refuse_unsteady
from timing import Protocol, burst, geometric_mean, medians

Run = Callable[[Any], Any]
GUESS = 2e14  # operations a second, for how many calls make up a burst


def error_of(torch: Any, row: Row, run: Run, data: dict[str, Any]) -> float:
    """Relative error (Frobenius) of a contestant over the first and the last sequence of the batch."""
    torch.backends.cuda.matmul.allow_tf32 = False
    got, off, size = run(data), 0.0, 0.0
    for one in (0, BATCH - 1):
        want = exact(torch, row, data, one)
        off += float((got[one].float() - want).square().sum())
        size += float(want.square().sum())
    return (off / size) ** 0.5


def measure(torch: Any, tile: Any, folder: Path, row: Row, protocol: Protocol) -> dict[str, Any]:
    data = [operands(torch, row, 0)]  # far larger than the last-level cache: one set is enough
    contestants: dict[str, Run] = peers(row)
    for path in sorted((folder / "bundles").glob(f"{row.name}.*")):
        kernel = tile.load(path)
        contestants[f"tile {path.suffix[1:]}"] = lambda d, k=kernel: k(*d.values())
    errors: dict[str, float] = {}
    for name, run in list(contestants.items()):
        try:
            errors[name] = error_of(torch, row, run, data[0])
        except Exception as error:  # who cannot do this row is left out of it, and said so
            print(f"  {name} left out: {type(error).__name__}: {str(error)[:200]}")
            del contestants[name]
    refuse(row.name, errors, row.dtype)
    refuse_unsteady(torch, row.name, contestants, data[0])
    times = burst(contestants, data, row.operations / GUESS, protocol)
    return {"row": row.name, "microseconds": times, "errors": errors}


def shown(row: Row, result: dict[str, Any]) -> str:
    """All contestants of a row, the fastest first."""
    lines = [row.name]
    for name, t in sorted(medians(result["microseconds"]).items(), key=lambda p: p[1]):
        spread = max(result["microseconds"][name]) / t - 1
        rate = f"{row.operations / t * 1e-6:8.1f} TFLOPS  {row.bytes / t * 1e-3:7.0f} GB/s"
        lines.append(
            f"   {name:16} {t:9.2f} us {rate}  error {result['errors'][name]:.1e}  spread {spread:+.1%}"
        )
    return "\n".join(lines)


def summary(results: list[tuple[Row, dict[str, Any]]]) -> list[dict[str, Any]]:
    """For each kernel: our speed in each row, and the peer's time over ours; ours is the kernel's first variant."""
    out: list[dict[str, Any]] = []
    for kernel in dict.fromkeys(row.kernel for row, _ in results):
        speeds: dict[str, float] = {}
        ratios: list[float] = []
        for row, result in results:
            found = medians(result["microseconds"])
            mine = found.get(f"tile {next(iter(VARIANTS[kernel]))}")
            if row.kernel == kernel and mine is not None:
                speeds[str(row.seqlen)] = round(row.operations / mine * 1e-6, 1)
                ratios += [v / mine for k, v in found.items() if not k.startswith("tile ")]
        mean = {"peer_over_ours_geometric_mean": round(geometric_mean(ratios), 4)} if ratios else {}
        out.append({"kernel": kernel, "tflops": speeds, **mean})
    return out


if __name__ == "__main__":
    script(__doc__, rows(), measure, shown, summary)
