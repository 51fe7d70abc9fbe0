"""Operands, the Triton kernels of ``mamba_ssm`` and the exact result of each row of benchmarks/mamba.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mamba_rows import BATCH, CHUNK, DIM, GROUPS, HEADS, STATE, Row

Run = Callable[[Any], None]


def operands(torch: Any, row: Row, seed: int) -> dict[str, Any]:
    """The tensors of both kernels by name; ``BC`` is C B^T of each chunk."""
    generator = torch.Generator("cuda").manual_seed(seed)
    kind, chunks = getattr(torch, row.dtype), row.chunks

    def normal(*shape: int) -> Any:
        return torch.randn(shape, device="cuda", generator=generator).to(kind)

    b, c = (normal(BATCH, row.seqlen, GROUPS, STATE) for _ in range(2))
    dt = torch.rand(BATCH, HEADS, chunks, CHUNK, device="cuda", generator=generator) * 0.19 + 0.01
    rate = -(torch.rand(HEADS, 1, 1, device="cuda", generator=generator) * 1.5 + 0.5)
    steps = {"dt": dt, "decay": torch.cumsum(dt * rate, -1)}
    x = normal(BATCH, row.seqlen, HEADS, DIM)
    if row.kernel == "chunk_state":
        return {"B": b, "x": x, **steps}
    cut = (BATCH, chunks, CHUNK, GROUPS, STATE)
    products = torch.einsum("bclgn,bcsgn->bcgls", c.view(cut), b.view(cut)).contiguous()
    states = normal(BATCH, chunks, HEADS, DIM, STATE)
    d = torch.randn(HEADS, device="cuda", generator=generator)
    return {"BC": products, "x": x, **steps, "C": c, "states": states, "D": d}


def peers(row: Row) -> dict[str, Run]:
    """The kernels that Mamba-2's authors publish, where they are installed."""
    try:
        if row.kernel == "chunk_state":
            from mamba_ssm.ops.triton.ssd_chunk_state import _chunk_state_fwd

            return {
                "triton": lambda d: _chunk_state_fwd(
                    d["B"], d["x"], d["dt"], d["decay"], states_in_fp32=False
                )
            }
        from mamba_ssm.ops.triton.ssd_chunk_scan import _chunk_scan_fwd
    except ImportError as error:
        print("no mamba_ssm:", error)
        return {}
    return {
        "triton": lambda d: _chunk_scan_fwd(
            d["BC"], d["x"], d["dt"], d["decay"], d["C"], d["states"], D=d["D"]
        )[0]
    }


def exact(torch: Any, row: Row, data: dict[str, Any], one: int) -> Any:
    """The result of sequence ``one`` of the batch, in float32."""
    x, dt, decay = (data[n][one].float() for n in ("x", "dt", "decay"))
    x = x.view(row.chunks, CHUNK, HEADS, DIM)
    if row.kernel == "chunk_state":
        weight = torch.exp(decay[..., -1:] - decay) * dt
        b = data["B"][one].float().view(row.chunks, CHUNK, STATE)
        return torch.einsum("hcl,clhp,cln->chpn", weight, x, b)
    out = torch.empty(row.chunks, CHUNK, HEADS, DIM, device=x.device)
    below = torch.ones(CHUNK, CHUNK, device=x.device, dtype=torch.bool).tril()
    for c in range(row.chunks):
        fading = torch.exp((decay[:, c, :, None] - decay[:, c, None, :]).clamp(max=0))
        weights = torch.where(below, data["BC"][one, c, 0].float() * fading * dt[:, c, None, :], 0)
        gates = data["C"][one].float().view(row.chunks, CHUNK, STATE)[c]
        past = torch.einsum("ln,hpn->hlp", gates, data["states"][one, c].float())
        both = weights @ x[c].transpose(0, 1) + torch.exp(decay[:, c, :, None]) * past
        out[c] = both.transpose(0, 1) + data["D"][:, None] * x[c]
    return out.view(row.seqlen, HEADS, DIM)
