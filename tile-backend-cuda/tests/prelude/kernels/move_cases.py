"""Cases of moves: 2 to 16 bytes between registers, shared and global memory, pieces that do not exist, 64-bit shuffles."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from case import Case, kernel

KINDS = {16: "u16", 32: "u32", 64: "u32x2", 128: "u32x4"}
T = 64


def moves() -> Iterator[Case]:
    """Global to shared, a neighbour's piece to registers, back to global; a third of the pieces is not there."""
    for bits, kind in KINDS.items():
        size = bits // 8
        data = np.random.default_rng(bits).integers(1, 256, T * size, dtype=np.uint8)
        body = f"""  unsigned char* s = (unsigned char*)shared_dynamic();
  move_b{bits}(s + t * {size}, x + t * {size}); cta_sync();
  {kind} v; move_b{bits}(&v, s + (t ^ 1) * {size}); move_b{bits}(y + t * {size}, &v); cta_sync();
  const bool inside = t % 3 != 0;
  fetch_b{bits}(s + t * {size}, x + (inside ? t * {size} : 0), inside); cta_sync();
  fetch_b{bits}(&v, s + (t ^ 1) * {size}, true); move_b{bits}(y + ({T} + t) * {size}, &v);"""
        pieces = data.reshape(T, size)
        there = np.where((np.arange(T) % 3 != 0)[:, None], pieces, 0)
        neighbour = np.arange(T) ^ 1
        yield Case(
            f"moves of {size} bytes",
            kernel("const unsigned char* x, unsigned char* y", body),
            [data, np.zeros(2 * T * size, np.uint8)],
            {1: np.concatenate((pieces[neighbour], there[neighbour])).astype(np.uint8).reshape(-1)},
            threads=T,
            shared=T * size,
            arch="sm_75",
        )


def wide_shuffles() -> Iterator[Case]:
    lane, warp = np.arange(T) % 32, np.arange(T) // 32 * 32
    sources = {
        "xor_b64(x[t], 5)": lane ^ 5,
        "up_b64(x[t], 3)": np.where(lane < 3, lane, lane - 3),
        "idx_b64(x[t], 17)": np.full(T, 17),
    }
    x = np.random.default_rng(64).integers(0, 2**64, T, dtype=np.uint64)
    body = "\n".join(f"  y[{i * T} + t] = shfl_{call};" for i, call in enumerate(sources))
    yield Case(
        "shuffles of 64 bits",
        kernel("const u64* x, u64* y", body),
        [x, np.zeros(len(sources) * T, np.uint64)],
        {1: x[np.concatenate([warp + s for s in sources.values()])]},
        threads=T,
        arch="sm_75",
    )


def cases() -> Iterator[Case]:
    yield from moves()
    yield from wide_shuffles()
