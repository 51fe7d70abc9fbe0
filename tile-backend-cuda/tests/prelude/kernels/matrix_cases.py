"""Cases of a warp's matrix instructions. Fragments are laid out by the layouts of ``atoms``: a second statement of the ISA's figures."""

from __future__ import annotations

from collections.abc import Iterator

import ml_dtypes
import numpy as np
from case import Case, kernel

from tile_backend_cuda import atoms
from tile_backend_cuda.prelude.matrix import BITS, count_of, register_of
from tile_core.layout.digits import lane, reg, tile
from tile_core.layout.layout import Axis, Layout

NUMPY = {
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "tf32": np.dtype(np.float32),
    "e4m3": np.dtype(ml_dtypes.float8_e4m3fn),
    "e5m2": np.dtype(ml_dtypes.float8_e5m2),
    "s8": np.dtype(np.int8),
    "u8": np.dtype(np.uint8),
    "s4": np.dtype(np.int8),
    "u4": np.dtype(np.uint8),
    "f32": np.dtype(np.float32),
    "s32": np.dtype(np.int32),
    "f64": np.dtype(np.float64),
}


def matrix(kind: str, shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Small numbers that every type holds and whose products add up exactly."""
    low, high = (0, 8) if kind.startswith("u") else (-4, 5)
    values = np.random.default_rng(seed).integers(low, high, shape)
    scale = 1 if NUMPY[kind].kind in "iu" else 0.5
    return (values * scale).astype(NUMPY[kind])


def fragments(x: np.ndarray, layout: Layout, kind: str, threads: int) -> np.ndarray:
    """(thread, register) words of the matrix spread as the layout says."""
    at, number = layout.table(Axis.THREAD), layout.table(Axis.REGISTER)
    per_thread = x.size // threads
    spread = np.zeros((threads, per_thread), x.dtype)
    spread[at.reshape(-1), number.reshape(-1)] = x.reshape(-1)
    if BITS[kind] == 4:
        nibbles = spread.view(np.uint8).reshape(threads, -1, 2) & 15
        return (nibbles[..., 0] | nibbles[..., 1] << 4).astype(np.uint8).copy().view(np.uint32)
    return spread if BITS[kind] >= 32 else spread.view(np.uint32)


# shapes beyond atoms.py, in the same digits
S4_K64_A = tile((16, 64), (reg(2, 8), lane(8, 4)), (reg(2, 16), lane(4), reg(8)))
S4_K64_B = tile((64, 8), (reg(2, 8), lane(4), reg(8)), (lane(8, 4),))
S4_K32_A = tile((16, 32), (reg(2, 8), lane(8, 4)), (lane(4), reg(8)))
S4_K32_B = tile((32, 8), (lane(4), reg(8)), (lane(8, 4),))
S8_K16_A = tile((16, 16), (reg(2, 4), lane(8, 4)), (lane(4), reg(4)))
S8_K16_B = tile((16, 8), (lane(4), reg(4)), (lane(8, 4),))
TF32_K4_A = tile((16, 4), (reg(2), lane(8, 4)), (lane(4),))
TF32_K4_B = tile((4, 8), (lane(4),), (lane(8, 4),))

ROWS: list[tuple[tuple[int, int, int], tuple[str, str, str], Layout, Layout, Layout]] = [
    *(
        (a.shape, tuple(atoms.SHORT[t] for t in a.types), a.a, a.b, a.c(a.shape[1]))  # type: ignore[misc]
        for a in (*atoms.SM_90, *atoms.SM_75)
    ),
    ((16, 8, 8), ("bf16", "bf16", "f32"), atoms.M16N8K8_A, atoms.M16N8K8_B, atoms.MMA_C),
    ((16, 8, 4), ("tf32", "tf32", "f32"), TF32_K4_A, TF32_K4_B, atoms.MMA_C),
    ((16, 8, 16), ("s8", "s8", "s32"), S8_K16_A, S8_K16_B, atoms.MMA_C),
    ((16, 8, 16), ("u8", "u8", "s32"), S8_K16_A, S8_K16_B, atoms.MMA_C),
    ((16, 8, 32), ("s4", "s4", "s32"), S4_K32_A, S4_K32_B, atoms.MMA_C),
    ((16, 8, 64), ("s4", "s4", "s32"), S4_K64_A, S4_K64_B, atoms.MMA_C),
    ((16, 8, 64), ("u4", "u4", "s32"), S4_K64_A, S4_K64_B, atoms.MMA_C),
    ((16, 8, 64), ("u4", "s4", "s32"), S4_K64_A, S4_K64_B, atoms.MMA_C),
]


def products() -> Iterator[Case]:
    for (m, n, k), (a, b, d), la, lb, lc in ROWS:
        x, y, z = matrix(a, (m, k), 1), matrix(b, (k, n), 2), matrix(d, (m, n), 3)
        wide = np.float64 if d != "s32" else np.int64
        wanted = (x.astype(wide) @ y.astype(wide) + z.astype(wide)).astype(NUMPY[d])
        counts = count_of(d, m * n), count_of(a, m * k), count_of(b, k * n)
        (td, _), (ta, _), (tb, _) = register_of(d), register_of(a), register_of(b)
        types = d + (f"_{a}" if a == b else f"_{a}_{b}")
        name = f"mma_m{m}n{n}k{k}_{types}"
        body = f"""  {ta} a[{counts[1]}]; {tb} b[{counts[2]}]; {td} c[{counts[0]}], d[{counts[0]}];
  #pragma unroll
  for (int i = 0; i < {counts[1]}; ++i) a[i] = x[t * {counts[1]} + i];
  #pragma unroll
  for (int i = 0; i < {counts[2]}; ++i) b[i] = y[t * {counts[2]} + i];
  #pragma unroll
  for (int i = 0; i < {counts[0]}; ++i) c[i] = z[t * {counts[0]} + i];
  {name}(d, a, b, c);
  #pragma unroll
  for (int i = 0; i < {counts[0]}; ++i) z[t * {counts[0]} + i] = d[i];"""
        since = 75 if (m, n, k) == (16, 8, 8) and a == "f16" else 89 if a[0] == "e" else 80
        yield Case(
            name,
            kernel(f"const {ta}* x, const {tb}* y, {td}* z", body),
            [fragments(x, la, a, 32), fragments(y, lb, b, 32), fragments(z, lc, d, 32)],
            {2: fragments(wanted, lc, d, 32)},
            arch=f"sm_{since}",
            modes=("late",),
        )


def moves() -> Iterator[Case]:
    """ldmatrix from a padded tile, stmatrix to another; both forms, and movmatrix."""
    pitch = 48  # bytes: a multiple of 16, no power of two
    for count in (1, 2, 4):
        for suffix in ("", "_trans"):
            data = np.arange(count * 64, dtype=np.uint16) + 1
            padded = np.zeros((count * 8, pitch // 2), np.uint16)
            padded[:, :8] = data.reshape(-1, 8)
            layout = atoms.ldmatrix(count, bool(suffix))
            address = atoms.ldmatrix_address(count)
            owner = np.zeros(32, np.int64)
            for q in range(count):
                for r in range(8):
                    owner[address.place((q, r)).get(Axis.THREAD, 0)] = q * 8 + r
            at, number = layout.table(Axis.THREAD), layout.table(Axis.REGISTER)
            spread = np.zeros((32, 2 * count), np.uint16)
            spread[at.reshape(-1), number.reshape(-1)] = data
            body = f"""  const u32 s = shared_address(shared_dynamic()); u32 d[{count}];
  for (int i = t; i < {padded.size // 2}; i += 32) st_shared_b32(s + 4 * i, x[i]);
  warp_sync();
  ldmatrix_x{count}{suffix}(d, s + row[t] * {pitch});
  for (int i = 0; i < {count}; ++i) y[t * {count} + i] = d[i];"""
            rows = owner.astype(np.uint32)
            yield Case(
                f"ldmatrix_x{count}{suffix}",
                kernel("const u32* x, const u32* row, u32* y", body),
                [padded.view(np.uint32), rows, np.zeros(32 * count, np.uint32)],
                {2: spread.view(np.uint32)},
                shared=padded.nbytes,
                arch="sm_75",
                modes=("late",),
            )
            body = f"""  const u32 s = shared_address(shared_dynamic()); u32 d[{count}];
  for (int i = t; i < {padded.size // 2}; i += 32) st_shared_b32(s + 4 * i, 0);
  for (int i = 0; i < {count}; ++i) d[i] = y[t * {count} + i];
  warp_sync();
  stmatrix_x{count}{suffix}(s + row[t] * {pitch}, d);
  warp_sync();
  for (int i = t; i < {padded.size // 2}; i += 32) x[i] = ld_shared_b32(s + 4 * i);"""
            yield Case(
                f"stmatrix_x{count}{suffix}",
                kernel("u32* x, const u32* row, const u32* y", body),
                [np.zeros_like(padded.view(np.uint32)), rows, spread.view(np.uint32)],
                {0: padded.view(np.uint32)},
                shared=padded.nbytes,
                modes=("late",),
            )
    m = np.arange(64, dtype=np.uint16).reshape(8, 8)
    yield Case(
        "movmatrix",
        kernel("const u32* x, u32* y", "  y[t] = movmatrix_trans(x[t]);"),
        [m.view(np.uint32), np.zeros(32, np.uint32)],
        {1: np.ascontiguousarray(m.T).view(np.uint32).reshape(-1)},
        arch="sm_75",
        modes=("late",),
    )


def cases() -> Iterator[Case]:
    yield from moves()
    yield from products()
