"""Cases of a warp and a block: shuffles, votes, reductions, elections, block votes, named barriers, cp.async with its groups."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from case import Case, kernel


def shuffles() -> Iterator[Case]:
    lane = np.arange(64)
    x = np.random.default_rng(7).standard_normal(64).astype(np.float32)

    def source(kind: str, n: int, width: int) -> np.ndarray:
        low = lane % 32 // width * width
        at = lane % 32
        match kind:
            case "xor":
                s = at ^ n
                s = np.where(s > low + width - 1, at, s)
            case "up":
                s = np.where(at - n < low, at, at - n)
            case "down":
                s = np.where(at + n > low + width - 1, at, at + n)
            case _:
                s = low + n % width
        return lane // 32 * 32 + s

    rows = [(k, n, w) for k in ("xor", "up", "down", "idx") for n, w in ((1, 32), (5, 32), (3, 8), (16, 32))]
    body, wanted = [], []
    for i, (kind, n, width) in enumerate(rows):
        body.append(
            f"  y[{i * 64} + t] = shfl_{kind}_f32(x[t], {n}, {width}); z[{i * 64} + t] = shfl_{kind}_b32((u32)t, {n}{'' if width == 32 else f', {width}'});"
        )
        wanted.append(source(kind, n, width))
    at = np.concatenate(wanted)
    yield Case(
        "shuffles",
        kernel("const float* x, float* y, u32* z", "\n".join(body)),
        [x, np.zeros(len(at), np.float32), np.zeros(len(at), np.uint32)],
        {1: x[at], 2: at.astype(np.uint32)},
        threads=64,
        arch="sm_75",
    )


def votes() -> Iterator[Case]:
    rng = np.random.default_rng(8)
    v = rng.integers(0, 2, 96).astype(np.uint32)
    v[32:64] = 1
    v[64:] = 0
    w = v.reshape(3, 32)

    def each(values: list[int]) -> np.ndarray:
        return np.repeat(np.array(values, np.uint32), 32)

    ballots = [int((r.astype(np.uint64) << np.arange(32, dtype=np.uint64)).sum()) for r in w]
    data = rng.integers(-50, 50, 96).astype(np.int32)
    d, u = data.reshape(3, 32), data.view(np.uint32).reshape(3, 32)
    match = [int(sum(1 << j for j in range(32) if row[j] == row[i])) for row in d % 5 for i in range(32)]
    rows: dict[str, np.ndarray] = {
        "vote_any(v[t] != 0)": each([int(r.any()) for r in w]),
        "vote_all(v[t] != 0)": each([int(r.all()) for r in w]),
        "vote_ballot(v[t] != 0)": each(ballots),
        "match_any_b32((u32)(((x[t] % 5) + 5) % 5))": np.array(match, np.uint32),
        "lane_id()": np.tile(np.arange(32, dtype=np.uint32), 3),
        "(u32)uniform(t)": each([0, 32, 64]),
        "cta_count(v[t] != 0)": np.full(96, v.sum(), np.uint32),
        "cta_any(v[t] != 0)": np.ones(96, np.uint32),
        "cta_all(v[t] != 0)": np.zeros(96, np.uint32),
        "elect_one()": np.tile((np.arange(32) == 0).astype(np.uint32), 3),
        "redux_add_u32((u32)x[t])": each([int(r.sum(dtype=np.uint32)) for r in u]),
        "(u32)redux_add_s32(x[t])": each([int(r.sum(dtype=np.int32)) % 2**32 for r in d]),
        "redux_min_u32((u32)x[t])": each([int(r.min()) for r in u]),
        "redux_max_u32((u32)x[t])": each([int(r.max()) for r in u]),
        "(u32)redux_min_s32(x[t])": each([int(r.min()) % 2**32 for r in d]),
        "(u32)redux_max_s32(x[t])": each([int(r.max()) % 2**32 for r in d]),
        "redux_and_b32((u32)x[t])": each([int(np.bitwise_and.reduce(r)) for r in u]),
        "redux_or_b32((u32)x[t])": each([int(np.bitwise_or.reduce(r)) for r in u]),
        "redux_xor_b32((u32)x[t])": each([int(np.bitwise_xor.reduce(r)) for r in u]),
    }
    body = "\n".join(f"  y[{i * 96} + t] = {call};" for i, call in enumerate(rows))
    wanted = np.concatenate(list(rows.values()))
    yield Case(
        "votes and reductions",
        kernel("const u32* v, const int* x, u32* y", body),
        [v, data, np.zeros(len(wanted), np.uint32)],
        {2: wanted},
        threads=96,
    )


def barriers() -> Iterator[Case]:
    """Two warps give, two take, by named barriers; then a warp barrier."""
    body = """  const u32 s = shared_address(shared_dynamic());
  for (int i = 0; i < 4; ++i) {
    if (t < 64) { if (i) named_sync(2, 128); st_shared_b32(s + 4 * t, x[i * 64 + t]); named_arrive(1, 128); }
    else { named_sync(1, 128); y[i * 64 + t - 64] = ld_shared_b32(s + 4 * (127 - t)); if (i < 3) named_arrive(2, 128); }
  }
  cta_sync();
  if (t < 32) { st_shared_b32(s + 4 * t, (u32)t); warp_sync(); z[t] = ld_shared_b32(s + 4 * (31 - t)); }"""
    x = np.arange(256, dtype=np.uint32)
    yield Case(
        "named barriers",
        kernel("const u32* x, u32* y, u32* z", body),
        [x, np.zeros(256, np.uint32), np.zeros(32, np.uint32)],
        {1: x.reshape(4, 64)[:, ::-1].reshape(-1).copy(), 2: np.arange(32, dtype=np.uint32)[::-1].copy()},
        threads=128,
        shared=256,
        arch="sm_75",
    )


def copies() -> Iterator[Case]:
    n = 64
    for size in (4, 8, 16):
        for name in (f"cp_async_{size}", *(["cp_async_16_cg"] if size == 16 else [])):
            data = np.random.default_rng(size).integers(1, 255, 3 * n * size, dtype=np.uint8)
            body = f"""  const u32 s = shared_address(shared_dynamic());
  for (int i = 0; i < 2; ++i) {{ {name}(s + (i * {n} + t) * {size}, x + (i * {n} + t) * {size}); cp_async_commit(); }}
  {name}_zfill(s + ({2 * n} + t) * {size}, x + ({2 * n} + t) * {size}, t % 2 ? 0 : {size}); cp_async_commit();
  cp_async_wait<2>(); cta_sync();
  for (int j = 0; j < {size}; ++j) y[t * {size} + j] = ld_shared_b8(s + (t ^ 1) * {size} + j);
  cp_async_wait<0>(); cta_sync();
  for (int i = 1; i < 3; ++i) for (int j = 0; j < {size}; ++j) y[(i * {n} + t) * {size} + j] = ld_shared_b8(s + (i * {n} + (t ^ 1)) * {size} + j);"""
            wanted = data.reshape(3, n, size).copy()
            wanted[2, 1::2] = 0
            wanted = wanted.reshape(3, n // 2, 2, size)[:, :, ::-1].reshape(-1).copy()
            yield Case(
                f"copies by {name}",
                kernel("const unsigned char* x, unsigned char* y", body),
                [data, np.zeros(len(data), np.uint8)],
                {1: wanted},
                threads=n,
                shared=3 * n * size,
                arch="sm_80",
            )
    body = """  const u32 s = shared_address(shared_dynamic()), bar = s + 1024;
  if (t == 0) mbarrier_init(bar, 64);
  cta_sync();
  cp_async_16(s + t * 16, x + t * 4); cp_async_arrive(bar);
  while (!mbarrier_test_wait(bar, 0)) {}
  for (int j = 0; j < 4; ++j) y[t * 4 + j] = ld_shared_b32(s + (63 - t) * 16 + j * 4);
  cp_async_4(s + t * 4, x + t); cp_async_wait_all();"""
    body = body.replace("cp_async_4(s", "cta_sync(); cp_async_4(s")
    x = np.arange(256, dtype=np.uint32)
    yield Case(
        "copies that arrive at a barrier",
        kernel("const u32* x, u32* y", body),
        [x, np.zeros(256, np.uint32)],
        {1: x.reshape(64, 4)[::-1].reshape(-1).copy()},
        threads=64,
        shared=1040,
        arch="sm_80",
    )


def cases() -> Iterator[Case]:
    yield from shuffles()
    yield from votes()
    yield from barriers()
    yield from copies()
