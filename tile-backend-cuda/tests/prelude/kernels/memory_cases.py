"""Cases of memory: vectors of 1 to 16 bytes through global and shared memory, hints, atomics, acquire and release between blocks."""

from __future__ import annotations

from collections.abc import Iterator

import ml_dtypes
import numpy as np
from case import Case, kernel

TYPES = {8: "u8", 16: "u16", 32: "u32", 64: "u32x2", 128: "u32x4"}
T = 64


def vectors() -> Iterator[Case]:
    for bits, kind in TYPES.items():
        size = bits // 8
        data = np.random.default_rng(bits).integers(0, 256, T * size, dtype=np.uint8)
        wide = bits >= 32
        loads = [f"ld_global_b{bits}", f"ld_global_nc_b{bits}"]
        stores = [f"st_global_b{bits}"]
        if wide:
            loads += [f"ld_global_stream_b{bits}", f"ld_global_hint_b{bits}"]
            stores += [f"st_global_stream_b{bits}", f"st_global_hint_b{bits}"]
        lines = [
            "  const u32 s = shared_address(shared_dynamic()); const u64 policy = l2_evict_last(); prefetch_l2(x);"
        ]
        for i, load in enumerate(loads):
            hint = ", policy" if "hint" in load else ""
            store = stores[i % len(stores)]
            tail = ", policy" if "hint" in store else ""
            # through shared memory, each thread reading what its neighbour wrote
            lines.append(
                f"  st_shared_b{bits}(s + t * {size}, {load}(x + t * {size}{hint})); cta_sync();\n"
                f"  {store}(y + {i * T * size} + t * {size}, ld_shared_b{bits}(s + (t ^ 1) * {size}){tail}); cta_sync();"
            )
        swapped = data.reshape(T // 2, 2, size)[:, ::-1].reshape(-1)
        yield Case(
            f"vectors of {size} bytes",
            kernel("const unsigned char* x, unsigned char* y", "\n".join(lines)),
            [data, np.zeros(len(loads) * T * size, np.uint8)],
            {1: np.tile(swapped, len(loads))},
            threads=T,
            shared=T * size,
            arch="sm_80",
        )


def atomics() -> Iterator[Case]:
    n = 256
    x = np.random.default_rng(5).integers(0, 1000, n).astype(np.int32)
    u = x.view(np.uint32)
    rows = {
        "add_u32": (0, u.sum(dtype=np.uint32)),
        "add_s32": (0, x.sum(dtype=np.int32)),
        "min_u32": (2**31, u.min()),
        "max_u32": (0, u.max()),
        "min_s32": (2**30, x.min()),
        "max_s32": (-5, x.max()),
        "and_b32": (-1, np.bitwise_and.reduce(u)),
        "or_b32": (0, np.bitwise_or.reduce(u)),
        "xor_b32": (0, np.bitwise_xor.reduce(u)),
    }
    start = np.array([v[0] for v in rows.values()], np.int64).astype(np.int32)
    wanted = np.array([np.int64(v[1]) for v in rows.values()], np.int64).astype(np.uint32).view(np.int32)
    kinds = {name: "int" if name.endswith("s32") else "u32" for name in rows}
    body = "\n".join(
        f"  atomic_{name}(({kinds[name]}*)y + {i}, ({kinds[name]})x[t]); red_{name}(({kinds[name]}*)z + {i}, ({kinds[name]})x[t]);"
        for i, name in enumerate(rows)
    )
    yield Case(
        "atomics of integers",
        kernel("const int* x, int* y, int* z", body),
        [x, start, start.copy()],
        {1: wanted, 2: wanted},
        threads=n,
        arch="sm_75",
    )
    shared = "\n".join(
        f"  atomic_shared_{name}(s + {4 * i}, ({kinds[name]})x[t]);" for i, name in enumerate(rows)
    )
    count = len(rows)
    yield Case(
        "atomics of shared integers",
        kernel(
            "const int* x, int* y, float* f",
            f"  const u32 s = shared_address(shared_dynamic()); if (t < {count + 1}) st_shared_b32(s + 4 * t, t < {count} ? y[t] : 0); cta_sync();\n"
            f"{shared}\n  atomic_shared_add_f32(s + {4 * count}, (float)x[t]); cta_sync();\n"
            f"  if (t < {count}) y[t] = ld_shared_b32(s + 4 * t); if (t == 0) f[0] = bits_as_float(ld_shared_b32(s + {4 * count}));",
        ),
        [x, start.copy(), np.zeros(1, np.float32)],
        {1: wanted, 2: np.array([x.sum()], np.float32)},
        threads=n,
        shared=4 * count + 4,
        arch="sm_75",
    )
    yield from _floats(x)


def _floats(x: np.ndarray) -> Iterator[Case]:
    n = len(x)
    small = (x % 8).astype(np.float32)
    total = small.sum()
    body = """  atomic_add_f32(y, x[t]); red_add_f32(y + 1, x[t]); red_add_f64(d, (double)x[t]);
  red_add_v2_f32(y + 2, x[t], x[t]); red_add_v4_f32(y + 4, x[t], x[t], x[t], x[t]);
  const u32 h = f16x2_from_f32(x[t], x[t]), b = bf16x2_from_f32(x[t], x[t]);
  if (t < 32) { red_add_f16x2(u, h); red_add_bf16x2(u + 1, b); red_add_v2_f16x2(u + 2, h, h); red_add_v4_f16x2(u + 4, h, h, h, h);
    red_add_v2_bf16x2(u + 8, b, b); red_add_v4_bf16x2(u + 12, b, b, b, b); }"""
    few = small[:32].sum()
    f16 = np.full(2, few, np.float16).view(np.uint32)[0]
    bf16 = np.full(2, few, ml_dtypes.bfloat16).view(np.uint32)[0]
    halves = np.array(
        [f16, bf16, f16, f16, f16, f16, f16, f16, bf16, bf16, 0, 0, bf16, bf16, bf16, bf16], np.uint32
    )
    assert few < 256  # exact in bfloat16
    yield Case(
        "atomics of floats",
        kernel("const float* x, float* y, double* d, u32* u", body),
        [small, np.zeros(8, np.float32), np.zeros(1), np.zeros(16, np.uint32)],
        {1: np.full(8, total, np.float32), 2: np.array([float(total)]), 3: halves},
        threads=n,
    )
    yield Case(
        "compare and swap, exchange",
        kernel(
            "u32* x, u32* y",
            "  u32 seen = ld_global_b32(x + 1); (void)seen;\n"
            "  for (u32 i = 0; i < 64; ++i) { cta_sync(); if (t == i) y[t] = atomic_cas_b32(x, i, i + 1); }\n  cta_sync(); if (t == 0) y[64] = atomic_exch_b32(x, 7);",
        ),
        [np.zeros(2, np.uint32), np.zeros(65, np.uint32)],
        {0: np.array([7, 0], np.uint32), 1: np.arange(65, dtype=np.uint32)},
        threads=64,
        arch="sm_75",
    )


def between_blocks() -> Iterator[Case]:
    """The last block adds what all wrote: release, acquire, and a fence of the device."""
    text = kernel(
        "const float* x, float* part, u32* flag, float* y",
        """  const int b = blockIdx.x;
  if (t == 0) { float s = 0; for (int i = 0; i < 16; ++i) s += x[b * 16 + i]; part[b] = s;
    fence_gpu(); const u32 before = atom_acq_rel_gpu_add_u32(flag, 1);
    if (before == gridDim.x - 1) { fence_gpu(); float r = 0; for (u32 i = 0; i < gridDim.x; ++i) r += part[i]; y[0] = r; st_release_gpu_u32(flag + 1, 1); } }
  if (t == 32 && b == gridDim.x - 1) { while (ld_acquire_gpu_u32(flag + 1) == 0) {} y[1] = y[0] + 1; red_release_gpu_add_u32(flag + 2, 3); }""",
    )
    x = (np.arange(16 * 6) % 7).astype(np.float32)
    yield Case(
        "last block",
        text,
        [x, np.zeros(6, np.float32), np.zeros(3, np.uint32), np.zeros(2, np.float32)],
        {2: np.array([6, 1, 3], np.uint32), 3: np.array([x.sum(), x.sum() + 1], np.float32)},
        threads=64,
        grid=6,
        arch="sm_75",
    )


def cases() -> Iterator[Case]:
    yield from vectors()
    yield from atomics()
    yield from between_blocks()
