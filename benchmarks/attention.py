"""Forward attention against torch's (cuDNN's and the flash backend), Triton's and a hand-made one on an NVIDIA GPU, interleaved.

    python benchmarks/attention.py dumps/attention --json benchmarks/results/attention_h200.json

The folder is made by ``attention_make.py`` elsewhere. Needs torch for CUDA; neither TVM nor a compiler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import handmade
from attention_rows import Row, rows
from comparison import script
from soundness import refuse, refuse_unsteady
from timing import Protocol, burst, geometric_mean, medians

Run = Callable[[Any], Any]
GUESS = 4e14  # operations a second, for how many calls make up a burst
LONG = 4096  # the bar asks more of sequences from here on


def peers(torch: Any, row: Row) -> dict[str, Run]:
    from torch.nn.attention import SDPBackend, sdpa_kernel

    def of(backend: Any) -> Run:
        def run(data: Any) -> Any:
            with sdpa_kernel(backend):
                return torch.nn.functional.scaled_dot_product_attention(*data, is_causal=row.causal)

        return run

    out = {"cudnn": of(SDPBackend.CUDNN_ATTENTION), "flash": of(SDPBackend.FLASH_ATTENTION)}
    try:
        import triton_attention
    except ImportError as error:
        print("no Triton:", error)
        return out
    for c in triton_attention.configurations(row.dim):
        out[f"triton {'x'.join(map(str, c))}"] = triton_attention.contestant(c, row.causal)
    return out


def operands(torch: Any, row: Row, seed: int) -> tuple[Any, ...]:
    generator = torch.Generator("cuda").manual_seed(seed)
    kind = getattr(torch, row.dtype)
    return tuple(torch.randn(row.shape, device="cuda", generator=generator).to(kind) for _ in range(3))


def exact(torch: Any, row: Row, data: Any) -> Any:
    """The result of the first and last head of the first and last sequence, in float64."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    picked = [x[:: max(1, len(x) - 1), :: x.shape[1] - 1].double() for x in data]
    with sdpa_kernel(SDPBackend.MATH):
        return torch.nn.functional.scaled_dot_product_attention(*picked, is_causal=row.causal)


def error_of(torch: Any, row: Row, run: Run, data: Any, want: Any) -> float:
    got = run(data)
    got = got[:: max(1, len(got) - 1), :: got.shape[1] - 1].double()
    return float((got - want).norm() / want.norm())


def measure(torch: Any, tile: Any, folder: Path, row: Row, protocol: Protocol) -> dict[str, Any]:
    data = [operands(torch, row, seed) for seed in range(2)]
    contestants = peers(torch, row) | handmade.attention(folder / "handmade", row.dim, row.causal, row.dtype)
    for path in sorted((folder / "bundles").glob(f"{row.name}.*")):
        kernel = tile.load(path)
        contestants[f"tile {path.suffix[1:]}"] = lambda d, k=kernel: k(*d)
    want = exact(torch, row, data[0])
    errors: dict[str, float] = {}
    for name, run in list(contestants.items()):
        try:
            errors[name] = error_of(torch, row, run, data[0], want)
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
        rate = row.operations / t * 1e-6
        lines.append(
            f"   {name:16} {t:9.2f} us {rate:8.1f} TFLOPS  error {result['errors'][name]:.1e}  spread {spread:+.1%}"
        )
    return "\n".join(lines)


def ratios(results: list[tuple[Row, dict[str, Any]]], peer: str) -> Iterator[tuple[Row, float]]:
    """A peer's time over ours: that of the variant which was chosen for the row before the run."""
    for row, result in results:
        found = medians(result["microseconds"])
        ours = found.get(f"tile {row.chosen}")
        if ours and peer in found:
            yield row, found[peer] / ours


def summary(results: list[tuple[Row, dict[str, Any]]]) -> dict[str, float]:
    """Geometric means over long sequences and short ones, and the least ratio of all."""
    out: dict[str, float] = {}
    for peer in ("cudnn", "flash", handmade.NAME):
        for name, long in (("from_4k", True), ("below_4k", False)):
            found = [x for row, x in ratios(results, peer) if (row.seqlen >= LONG) == long]
            if found:
                out[f"{peer}_over_ours_{name}"] = round(geometric_mean(found), 4)
                out[f"{peer}_over_ours_{name}_least"] = round(min(found), 4)
    return out


if __name__ == "__main__":
    script(__doc__, rows(), measure, shown, summary, rounds=5)
