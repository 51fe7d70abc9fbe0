"""Cases of TMA: boxes of 1 to 5 dimensions with edges, swizzles, steps, multicast, reductions; bulk copies; clusters."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from case import Case, kernel

from tile_backend_cuda.prelude.tensor_map import TensorMap

PROLOGUE = """  const u32 s = shared_base(), bar = s + {bar};
  if (t == 0) {{ mbarrier_init(bar, 1); fence_mbarrier_init(); }}
  cta_sync();"""


def swizzled(image: np.ndarray, span: int) -> np.ndarray:
    """Bytes of shared memory (from an address that is a multiple of 1024) for bytes in the order of the box."""
    if not span:
        return image
    at = np.arange(len(image))
    chunk, row = at // 16, at // 128
    moved = (chunk ^ (row % (span // 16))) * 16 + at % 16
    out = np.zeros_like(image)
    out[moved] = image
    return out


def box_of(
    x: np.ndarray, at: tuple[int, ...], box: tuple[int, ...], steps: tuple[int, ...], fill: float = 0
) -> np.ndarray:
    """The box at ``at``; outside of the array it holds ``fill``."""
    out = np.full(box, fill, x.dtype)
    for index in np.ndindex(*box):
        place = tuple(a + i * s for a, i, s in zip(at, index, steps))
        if all(0 <= p < n for p, n in zip(place, x.shape)):
            out[index] = x[place]
    return out


SHAPES = {
    1: ((200,), (64,), (144,), 0),
    2: ((20, 40), (8, 32), (-3, 16), 64),
    3: ((5, 9, 64), (2, 4, 64), (4, -1, 0), 128),
    4: ((2, 3, 5, 24), (2, 2, 4, 16), (1, 1, 3, 8), 32),
    5: ((2, 2, 3, 4, 16), (1, 2, 2, 3, 8), (1, -1, 2, 2, 8), 0),
}


def tensors() -> Iterator[Case]:
    for rank, (shape, box, at, span) in SHAPES.items():
        x = (np.arange(np.prod(shape)) % 2039).astype(np.float16).reshape(shape)
        x.reshape(-1)[0] = 1
        image = box_of(x, at, box, (1,) * rank)
        size = image.nbytes
        coordinates = ", ".join(map(str, at[::-1]))
        for hint in ("", "_hint"):
            policy = ", l2_evict_first()" if hint else ""
            body = (
                PROLOGUE.format(bar=size)
                + f"""
  if (t == 0) {{ tensormap_prefetch(&map); tma_prefetch_{rank}d(&map, {coordinates}); mbarrier_arrive_expect_tx(bar, {size}); tma_load_{rank}d{hint}(s, &map, bar, {coordinates}{policy}); }}
  mbarrier_wait(bar, 0);
  for (int i = t; i < {size // 4}; i += 32) y[i] = ld_shared_b32(s + 4 * i);"""
            )
            yield Case(
                f"tma_load_{rank}d{hint}",
                kernel("const __grid_constant__ TensorMap map, u32* y", body),
                [TensorMap(x, box, span), np.zeros(size // 4, np.uint32)],
                {1: swizzled(image.reshape(-1).view(np.uint8), span).view(np.uint32)},
                shared=size + 1024 + 16,
            )
        yield from _stores(rank, x, box, tuple(max(0, a) for a in at), span)


def _stores(rank: int, x: np.ndarray, box: tuple, at: tuple, span: int) -> Iterator[Case]:
    tile = (np.arange(np.prod(box)) % 500 + 1).astype(np.float16).reshape(box)
    size, coordinates = tile.nbytes, ", ".join(map(str, at[::-1]))
    memory = swizzled(tile.reshape(-1).view(np.uint8), span).view(np.uint32)
    for name in ("store", "store_hint", "reduce_add"):
        wanted = x.copy()
        for index in np.ndindex(*box):
            place = tuple(a + i for a, i in zip(at, index))
            if all(0 <= p < n for p, n in zip(place, x.shape)):
                wanted[place] = tile[index] + (x[place] if name == "reduce_add" else 0)
        call = f"tma_{name.replace('_hint', '')}_{rank}d" + ("_hint" if "hint" in name else "")
        policy = ", l2_evict_last()" if "hint" in name else ""
        body = f"""  const u32 s = shared_base();
  for (int i = t; i < {size // 4}; i += 32) st_shared_b32(s + 4 * i, y[i]);
  fence_proxy_async_shared(); cta_sync();
  if (t == 0) {{ {call}(&map, s, {coordinates}{policy}); bulk_commit(); bulk_wait<0>(); }}"""
        yield Case(
            call,
            kernel("const __grid_constant__ TensorMap map, const u32* y", body),
            [TensorMap(x, box, span), memory],
            {0: wanted},
            shared=size + 1024,
        )


def steps() -> Iterator[Case]:
    """Every second row, NaN outside."""
    x = np.arange(12 * 16).astype(np.float32).reshape(12, 16)
    image = box_of(x, (5, 0), (5, 16), (2, 1), np.nan)
    image.view(np.uint32)[np.isnan(image)] = 0x7FFFFFFF
    body = (
        PROLOGUE.format(bar=1024)
        + """
  if (t == 0) { mbarrier_arrive_expect_tx(bar, 320); tma_load_2d(s, &map, bar, 0, 5); }
  mbarrier_wait(bar, 0);
  for (int i = t; i < 80; i += 32) y[i] = bits_as_float(ld_shared_b32(s + 4 * i));"""
    )
    yield Case(
        "tma with steps",
        kernel("const __grid_constant__ TensorMap map, float* y", body),
        [TensorMap(x, (10, 16), steps=(2, 1), nan=True), np.zeros(80, np.float32)],
        {1: image.reshape(-1)},
        shared=2048 + 16,
        relative=1e-9,  # which NaN is the hardware's choice
        tags={"steps": True},
    )


def bulk() -> Iterator[Case]:
    x = np.arange(256, dtype=np.uint32)
    body = (
        PROLOGUE.format(bar=2048)
        + """
  if (t == 0) { prefetch_l2_bulk(x, 1024); mbarrier_expect_tx(bar, 1024); mbarrier_arrive(bar); bulk_load(s, x, 512, bar); bulk_load_hint(s + 512, x + 128, 512, bar, l2_evict_first()); }
  mbarrier_wait(bar, 0);
  for (int i = t; i < 256; i += 32) st_shared_b32(s + 1024 + 4 * i, ld_shared_b32(s + 4 * (255 - i)));
  fence_proxy_async(); cta_sync();
  if (t == 0) { bulk_store(y, s + 1024, 512); bulk_commit(); bulk_store_hint(y + 128, s + 1536, 512, l2_evict_last()); bulk_commit(); bulk_wait_read<1>(); bulk_wait<0>(); mbarrier_invalidate(bar); }"""
    )
    yield Case(
        "bulk copies",
        kernel("const u32* x, u32* y", body),
        [x, np.zeros(256, np.uint32)],
        {1: x[::-1].copy()},
        shared=2048 + 1024 + 16,
    )
    import ml_dtypes

    for name, dtype in (("f32", np.float32), ("f16", np.float16), ("bf16", ml_dtypes.bfloat16)):
        a = (np.arange(64) % 16).astype(dtype)
        body = """  const u32 s = shared_base();
  if (t < BYTES / 4) st_shared_b32(s + 4 * t, x[t]);
  fence_proxy_async(); cta_sync();
  if (t == 0) { bulk_reduce_add_NAME(y, s, BYTES); bulk_commit(); bulk_wait<0>(); }"""
        body = body.replace("NAME", name).replace("BYTES", str(a.nbytes))
        yield Case(
            f"bulk_reduce_add_{name}",
            kernel("const u32* x, void* y", body),
            [a.view(np.uint32), a.view(np.uint32).copy()],
            {1: (a + a).view(np.uint32)},
            threads=64,
            shared=2048,
        )


def clusters() -> Iterator[Case]:
    """A ring: each of four blocks writes into the next in every way there is; then one multicast for all."""
    body = (
        PROLOGUE.format(bar=4096).replace(
            "mbarrier_init(bar, 1)", "mbarrier_init(bar, 3); mbarrier_init(bar + 8, 1)"
        )
        + """
  const u32 rank = cluster_rank(), next = (rank + 1) % cluster_size(), far = cluster_map(s, next), far_bar = cluster_map(bar, next);
  cluster_arrive_relaxed(); cluster_wait(); cluster_sync();
  st_shared_b32(s + 2048 + 4 * t, rank * 100 + t); fence_proxy_async(); cta_sync();
  if (t == 0) {
    mbarrier_arrive_expect_tx(bar, 4 + 8 + 16 + 128);
    u32x2 two = {rank, 2}; u32x4 four = {rank, 4, 5, 6};
    st_async_b32(far, rank + 7, far_bar); st_async_b64(far + 8, two, far_bar); st_async_b128(far + 16, four, far_bar);
    bulk_copy_cluster(far + 128, s + 2048, 128, far_bar);
    mbarrier_arrive_cluster(far_bar); mbarrier_arrive_expect_tx_cluster(far_bar, 0);
  }
  mbarrier_wait(bar, 0);
  u32* out = y + rank * 256;
  if (t < 8 && t != 1) out[t] = ld_shared_b32(s + 4 * t);
  out[32 + t] = ld_shared_b32(s + 128 + 4 * t);
  st_cluster_b32(far + 1024 + 4 * t, 1000 + t); u32x2 v2 = {rank, (u32)t}; u32x4 v4 = {rank, (u32)t, 1, 2};
  st_cluster_b64(far + 1152 + 8 * t, v2); st_cluster_b128(far + 1408 + 16 * t, v4);
  cluster_arrive(); cluster_wait();
  out[64 + t] = ld_cluster_b32(far + 1024 + 4 * t); out[96 + t] = ld_cluster_b64(far + 1152 + 8 * t).x; out[128 + t] = ld_cluster_b128(far + 1408 + 16 * t).x;
  out[160 + t] = ld_shared_b32(s + 1024 + 4 * t);
  fence_cluster(); fence_cta();
  if (t == 0) {
    mbarrier_arrive_expect_tx(bar + 8, 256 + 128);
    if (rank == 0) { bulk_load_multicast(s + 3072, x, 256, bar + 8, 15); bulk_load_multicast_hint(s + 3328, x + 64, 128, bar + 8, 15, l2_evict_unchanged()); }
  }
  mbarrier_wait(bar + 8, 0);
  for (int i = t; i < 64; i += 32) out[192 + i] = ld_shared_b32(s + 3072 + 4 * i) + ld_shared_b32(s + 3328 + 4 * t);
  cluster_sync();"""
    )
    x = np.arange(96, dtype=np.uint32) * 3
    wanted = np.zeros((4, 256), np.uint32)
    lanes = np.arange(32)
    for r in range(4):
        before = (r + 3) % 4
        wanted[r, :8] = [before + 7, 0, before, 2, before, 4, 5, 6]
        wanted[r, 32:64] = before * 100 + lanes
        wanted[r, 64:96] = 1000 + lanes
        wanted[r, 96:160] = r
        wanted[r, 160:192] = 1000 + lanes
        wanted[r, 192:] = x[:64] + np.tile(x[64:], 2)
    yield Case(
        "cluster",
        kernel("const u32* x, u32* y", body),
        [x, np.zeros(1024, np.uint32)],
        {1: wanted.reshape(-1)},
        grid=4,
        cluster=4,
        shared=4096 + 1024 + 16,
    )
    yield from _multicast()


def _multicast() -> Iterator[Case]:
    x = np.arange(16 * 32).astype(np.float16).reshape(16, 32)
    for hint in ("", "_hint"):
        policy = ", l2_evict_last()" if hint else ""
        body = (
            PROLOGUE.format(bar=1024)
            + f"""
  const u32 rank = cluster_rank();
  cluster_sync();
  if (t == 0) {{ mbarrier_arrive_expect_tx(bar, 1024); tma_load_2d_multicast{hint}(s + rank * 512, &map, bar, 0, (int)rank * 8, (u16)3{policy}); }}
  mbarrier_wait(bar, 0);
  for (int i = t; i < 256; i += 32) y[rank * 256 + i] = ld_shared_b32(s + 4 * i);
  cluster_sync();"""
        )
        yield Case(
            f"tma_load_2d_multicast{hint}",
            kernel("const __grid_constant__ TensorMap map, u32* y", body),
            [TensorMap(x, (8, 32)), np.zeros(512, np.uint32)],
            {1: np.tile(x.reshape(-1).view(np.uint32), 2)},
            grid=2,
            cluster=2,
            shared=2048 + 16,
        )


def cases() -> Iterator[Case]:
    yield from tensors()
    yield from steps()
    yield from bulk()
    yield from clusters()
