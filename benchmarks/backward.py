"""The gradients of attention on an NVIDIA GPU: ours, and torch's by cuDNN and its flash backend, in one run, interleaved.

    python benchmarks/backward.py dumps/backward --json benchmarks/results/backward_h200.json

The folder is made by ``backward_make.py`` elsewhere. Needs torch for CUDA; neither TVM nor a compiler.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from backward_rows import BATCH, DIM, HEADS, SEQLEN, VARIANTS, Row, rows
from comparison import script
from soundness import refuse
from timing import Protocol, burst, medians

Run = Callable[[Any], Any]
GUESS = 3e14  # operations a second, for how many calls make up a burst


def operands(torch: Any, row: Row) -> dict[str, Any]:
    """Tensors, the result, and the logarithms of its row sums."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    generator = torch.Generator("cuda").manual_seed(0)
    kind = getattr(torch, row.dtype)
    q, k, v, grad = (
        torch.randn(BATCH, HEADS, SEQLEN, DIM, device="cuda", generator=generator).to(kind) for _ in range(4)
    )
    scores = torch.empty(BATCH, HEADS, SEQLEN, device="cuda")
    for b in range(BATCH):
        for h in range(HEADS):
            one = q[b, h].float() @ k[b, h].float().T * DIM**-0.5
            if row.causal:
                one.masked_fill_(torch.ones_like(one, dtype=torch.bool).triu_(1), float("-inf"))
            scores[b, h] = one.logsumexp(-1)
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        out = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=row.causal)
    return {"given": (q, k, v, out, grad, scores)}


def peers(torch: Any, row: Row) -> dict[str, Run]:
    from torch.nn.attention import SDPBackend, sdpa_kernel

    def of(backend: Any) -> Run:
        made: dict[int, Any] = {}  # by stream: gradients are computed on the stream of what they are of

        def run(data: dict[str, Any]) -> Any:
            q, k, v, _, grad, _ = data["given"]
            stream = torch.cuda.current_stream().cuda_stream
            if stream not in made:
                leaves = [x.detach().clone().requires_grad_() for x in (q, k, v)]
                with sdpa_kernel(backend):
                    out = torch.nn.functional.scaled_dot_product_attention(*leaves, is_causal=row.causal)
                made[stream] = out, leaves
            out, leaves = made[stream]
            return torch.autograd.grad(out, leaves, grad, retain_graph=True)

        return run

    return {"cudnn": of(SDPBackend.CUDNN_ATTENTION), "flash": of(SDPBackend.FLASH_ATTENTION)}


def measure(torch: Any, tile: Any, folder: Path, row: Row, protocol: Protocol) -> dict[str, Any]:
    data = operands(torch, row)
    contestants = peers(torch, row)
    for path in sorted((folder / "bundles").glob(f"{row.name}.*")):
        kernel = tile.load(path)
        contestants[f"tile {path.suffix[1:]}"] = lambda d, k=kernel: k(*d["given"])
    want = contestants["flash"](data)
    errors: dict[str, float] = {}
    for name, run in contestants.items():
        pairs = zip(run(data), want, strict=True)
        errors[name] = max(float((g.float() - w.float()).norm() / w.float().norm()) for g, w in pairs)
    refuse(row.name, errors, row.dtype)
    times = burst(contestants, [data], row.operations / GUESS, protocol)
    return {"row": row.name, "microseconds": times, "errors": errors}


def shown(row: Row, result: dict[str, Any]) -> str:
    """All contestants of a row, the fastest first. Errors are distances from torch's flash backend."""
    lines = [row.name]
    for name, t in sorted(medians(result["microseconds"]).items(), key=lambda p: p[1]):
        spread = max(result["microseconds"][name]) / t - 1
        rate = row.operations / t * 1e-6
        lines.append(
            f"   {name:16} {t:9.2f} us {rate:8.1f} TFLOPS  error {result['errors'][name]:.1e}  spread {spread:+.1%}"
        )
    return "\n".join(lines)


def summary(results: list[tuple[Row, dict[str, Any]]]) -> dict[str, float]:
    """cuDNN's time over ours: of the first variant."""
    out: dict[str, float] = {}
    for row, result in results:
        found = medians(result["microseconds"])
        out[row.name] = round(found["cudnn"] / found[f"tile {next(iter(VARIANTS))}"], 4)
    return out


if __name__ == "__main__":
    script(__doc__, rows(), measure, shown, summary, rounds=5)
