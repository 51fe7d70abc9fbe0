"""MLA decoding on an NVIDIA GPU: ours, and the hand-made kernel where the folder holds it, in one run, interleaved.

    python benchmarks/mla.py dumps/mla --json benchmarks/results/mla_h200.json

The folder is made by ``mla_make.py`` elsewhere; ``handmade.py`` says what a peer needs there. Needs torch for CUDA; neither
TVM nor a compiler.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import handmade
from comparison import script
from mla_rows import DIM, HEADS, PAGE, ROPE, Row, rows
from soundness import refuse, refuse_unsteady
from timing import Protocol, burst, geometric_mean, medians

Run = Callable[[Any], Any]
GUESS = 6e14  # operations a second, for how many calls make up a burst


def operands(torch: Any, row: Row, seed: int) -> tuple[Any, ...]:
    """Queries, cache, lengths and, for a paged cache, the table of a shuffled one."""
    generator = torch.Generator("cuda").manual_seed(seed)
    kind = getattr(torch, row.dtype)

    def normal(*shape: int) -> Any:
        return torch.empty(shape, device="cuda", dtype=kind).normal_(generator=generator)

    q = normal(row.batch, HEADS, DIM + ROPE)
    lengths = torch.tensor(row.lengths, dtype=torch.int32, device="cuda")
    if row.form != "paged":
        return q, normal(row.batch, row.most, DIM + ROPE), lengths
    pages = row.batch * row.most // PAGE
    table = torch.randperm(pages, generator=generator, device="cuda").int().view(row.batch, -1)
    return q, normal(pages, PAGE, DIM + ROPE), lengths, table


def exact(torch: Any, row: Row, data: Any, one: int) -> Any:
    """The result of sequence ``one``, in float64."""
    kv = data[1][data[3][one].long()].flatten(0, 1) if row.form == "paged" else data[1][one]
    q, kv = data[0][one].double(), kv[: row.lengths[one]].double()
    return torch.softmax(q @ kv.T * (DIM + ROPE) ** -0.5, -1) @ kv[:, :DIM]


def error_of(torch: Any, row: Row, run: Run, data: Any, want: dict[int, Any]) -> float:
    got = run(data)
    off = sum(float((got[one].double() - w).square().sum()) for one, w in want.items())
    return (off / sum(float(w.square().sum()) for w in want.values())) ** 0.5


def measure(torch: Any, tile: Any, folder: Path, row: Row, protocol: Protocol) -> dict[str, Any]:
    data = operands(torch, row, 0)  # larger than the last-level cache: one set is enough
    contestants: dict[str, Run] = handmade.mla(folder / "handmade", row, data)
    longest = sorted(range(row.batch), key=lambda one: -row.lengths[one])
    order = [torch.tensor(longest, dtype=torch.int32, device="cuda")] if row.form == "ragged" else []
    for path in sorted((folder / "bundles").glob(f"{row.name}.*")):
        kernel = tile.load(path)
        contestants[f"tile {path.suffix[1:]}"] = lambda d, k=kernel: k(*d, *order)
    want = {one: exact(torch, row, data, one) for one in (0, row.batch - 1)}
    errors = {name: error_of(torch, row, run, data, want) for name, run in contestants.items()}
    refuse(row.name, errors, row.dtype)
    refuse_unsteady(torch, row.name, contestants, data)
    times = burst(contestants, [data], row.operations / GUESS, protocol)
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


def summary(results: list[tuple[Row, dict[str, Any]]]) -> dict[str, dict[str, float]]:
    """For each form: the time of the fastest hand-made kernel over that of our variant which was chosen for the row."""
    ratios: dict[str, list[float]] = {}
    for row, result in results:
        found = medians(result["microseconds"])
        peers = [time for name, time in found.items() if name.startswith(handmade.NAME)]
        if peers and f"tile {row.chosen}" in found:
            ratios.setdefault(row.form, []).append(min(peers) / found[f"tile {row.chosen}"])
    return {
        form: {"geometric_mean": round(geometric_mean(found), 4), "least": round(min(found), 4)}
        for form, found in ratios.items()
    }


if __name__ == "__main__":
    script(__doc__, rows(), measure, shown, summary, rounds=5)
