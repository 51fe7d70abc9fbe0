"""Whole matrix products: Hopper's (TMA, mbarriers, wgmma, stmatrix, TMA store, roles, clusters) and Ampere's (cp.async, ldmatrix, mma)."""

from __future__ import annotations

from collections.abc import Iterator

import ml_dtypes
import numpy as np
from case import Case

from tile_backend_cuda.prelude.tensor_map import TensorMap

BF16 = np.dtype(ml_dtypes.bfloat16)

# C[M,N] = A[M,K] B[N,K]^T. A producer warpgroup feeds a ring of stages, two consumer warpgroups of 64 rows each multiply.
# With CM = 2 two blocks along M share B: each loads half of it for both. Persistent: the ring's phases go on from tile to tile.
HOPPER = """
constexpr int BM = 128, BN = 64, BK = 64, STAGES = 3, CM = %CM%;
constexpr u32 A_BYTES = BM * BK * 2, B_BYTES = BN * BK * 2, STAGE = A_BYTES + B_BYTES, C_BYTES = 64 * BN * 2;
extern "C" __global__ void __launch_bounds__(384, 1)
k(const __grid_constant__ TensorMap mA, const __grid_constant__ TensorMap mB, const __grid_constant__ TensorMap mC, int M, int N, int K) {
  const u32 base = shared_base(), cstage = base + STAGES * STAGE, full0 = cstage + 2 * C_BYTES, empty0 = full0 + STAGES * 8;
  const int tid = threadIdx.x, warp = uniform(tid >> 5), wg = warp >> 2, lane = tid & 31;
  const int rank = CM > 1 ? (int)cluster_rank() : 0, first = blockIdx.x / CM, stride = gridDim.x / CM;
  const int ntm = (M + BM * CM - 1) / (BM * CM), ntn = (N + BN - 1) / BN, total = ntm * ntn, KT = (K + BK - 1) / BK;
  if (tid == 0) {
    tensormap_prefetch(&mA); tensormap_prefetch(&mB); tensormap_prefetch(&mC);
    for (int s = 0; s < STAGES; ++s) {
      mbarrier_init(full0 + s * 8, 1);
      mbarrier_init(empty0 + s * 8, 2 * CM);
    }
    fence_mbarrier_init();
  }
  if (CM > 1) {
    cluster_sync();
  } else {
    cta_sync();
  }
  if (wg == 2) {
    setmaxnreg_dec<40>();
    if (warp == 8 && elect_one()) {
      int s = 0; u32 ph = 1;
      for (int tile = first; tile < total; tile += stride) {
        const int rowA = (tile % ntm * CM + rank) * BM, rowB = tile / ntm * BN + rank * (BN / CM);
        for (int k = 0; k < KT; ++k) {
          const u32 full = full0 + s * 8, sa = base + s * STAGE, sb = sa + A_BYTES + rank * (B_BYTES / CM);
          mbarrier_wait(empty0 + s * 8, ph);
          mbarrier_arrive_expect_tx(full, STAGE);
          tma_load_2d(sa, &mA, full, k * BK, rowA);
          if (CM > 1) tma_load_2d_multicast(sb, &mB, full, k * BK, rowB, (u16)((1 << CM) - 1));
          else tma_load_2d(sb, &mB, full, k * BK, rowB);
          if (++s == STAGES) { s = 0; ph ^= 1; }
        }
      }
    }
  } else {
    setmaxnreg_inc<232>();
    const int wtid = tid & 127, wrow = (warp & 3) * 16;
    const u64 descA = wgmma_descriptor(base + wg * 64 * 128, 16, 1024, 128), descB = wgmma_descriptor(base + A_BYTES, 16, 1024, 128);
    const u32 cbuf = cstage + wg * C_BYTES;
    float acc[BN / 2];
    int s = 0; u32 ph = 0;
    for (int tile = first; tile < total; tile += stride) {
      const int row0 = (tile % ntm * CM + rank) * BM + wg * 64, col0 = tile / ntm * BN;
      int rel = s;
      for (int k = 0; k < KT; ++k) {
        mbarrier_wait(full0 + s * 8, ph);
        const u64 da = wgmma_descriptor_add(descA, s * STAGE), db = wgmma_descriptor_add(descB, s * STAGE);
        wgmma_fence();
        #pragma unroll
        for (int kk = 0; kk < BK / 16; ++kk)
          wgmma_m64n64k16_f32_bf16_ss(acc, wgmma_descriptor_add(da, kk * 32), wgmma_descriptor_add(db, kk * 32), (k | kk) != 0);
        wgmma_commit();
        wgmma_wait<1>();
        if (k) {
          RELEASE(rel);
          if (++rel == STAGES) rel = 0;
        }
        if (++s == STAGES) { s = 0; ph ^= 1; }
      }
      wgmma_wait<0>();
      RELEASE(rel);
      hold_registers_f32<BN / 2>(acc);
      if (wtid == 0) bulk_wait_read<0>();
      named_sync(1 + wg, 128);
      #pragma unroll
      for (int j = 0; j < BN / 16; ++j) {
        const u32 v[4] = {bf16x2_from_f32(acc[j * 8], acc[j * 8 + 1]), bf16x2_from_f32(acc[j * 8 + 2], acc[j * 8 + 3]),
                          bf16x2_from_f32(acc[j * 8 + 4], acc[j * 8 + 5]), bf16x2_from_f32(acc[j * 8 + 6], acc[j * 8 + 7])};
        stmatrix_x4(cbuf + (wrow + (lane & 15)) * 128 + ((j * 32 + (lane >> 4) * 16) ^ ((lane & 7) << 4)), v);
      }
      fence_proxy_async_shared();
      named_sync(1 + wg, 128);
      if (wtid == 0) {
        tma_store_2d(&mC, cbuf, col0, row0);
        bulk_commit();
      }
    }
    if (wtid == 0) bulk_wait_read<0>();
  }
  if (CM > 1) {
    cluster_sync();
  }
}
"""
RELEASE = {
    1: "if (wtid == 0) mbarrier_arrive(empty0 + {slot} * 8)",
    2: "if (wtid < CM) mbarrier_arrive_cluster(cluster_map(empty0 + {slot} * 8, wtid))",
}


def hopper_text(cm: int) -> str:
    return HOPPER.replace("%CM%", str(cm)).replace("RELEASE(rel)", RELEASE[cm].format(slot="rel"))


def numbers(m: int, n: int, k: int, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A, B (n x k) and their product; sums stay exact in float32."""
    rng = np.random.default_rng(m + n + k)
    a, b = (rng.integers(-4, 5, s).astype(np.float32) / 4 for s in ((m, k), (n, k)))
    return a.astype(dtype), b.astype(dtype), a @ b.T


def hopper(m: int, n: int, k: int, blocks: int, cm: int = 1) -> Case:
    a, b, c = numbers(m, n, k, BF16)
    guard = np.full((m, n), 0, BF16)
    return Case(
        f"hopper gemm {m}x{n}x{k}, {blocks} blocks, cluster {cm}",
        hopper_text(cm),
        [
            TensorMap(a, (128, 64), 128),
            TensorMap(b, (64 // cm, 64), 128),
            TensorMap(guard, (64, 64), 128),
            m,
            n,
            k,
        ],
        {2: c.astype(BF16)},
        threads=384,
        grid=blocks,
        cluster=cm,
        shared=1024 + 3 * (128 + 64) * 128 + 2 * 64 * 64 * 2 + 3 * 16,
    )


# C[M,N] = A[M,K] B[N,K]^T by four warps of 32x32 on a 64x64 tile, two stages of cp.async; rows outside are zero-filled.
AMPERE = """
constexpr int BM = 64, BN = 64, BK = 32, STAGES = 2, PITCH = 64;
extern "C" __global__ void __launch_bounds__(128)
k(const f16* A, const f16* B, f16* C, int M, int N, int K) {
  const u32 base = shared_address(shared_dynamic());
  const int tid = threadIdx.x, warp = tid >> 5, lane = tid & 31, wm = warp & 1, wn = warp >> 1;
  const int m0 = blockIdx.x * BM, n0 = blockIdx.y * BN, KT = (K + BK - 1) / BK;
  float acc[2][4][4];
  #pragma unroll
  for (int i = 0; i < 32; ++i) acc[i / 16][i / 4 % 4][i % 4] = 0;
  auto load = [&](int k, int stage) {
    #pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int c = tid + i * 128, row = c / 4 % 64, chunk = c % 4, col = k * BK + chunk * 8;
      const bool isB = c >= 256;
      const int r = (isB ? n0 : m0) + row, rows = isB ? N : M;
      const u32 to = base + stage * (BM + BN) * PITCH + (isB ? BM * PITCH : 0) + row * PITCH + ((chunk ^ (row >> 1 & 3)) << 4);
      const bool in = r < rows && col < K;
      cp_async_16_cg_zfill(to, (isB ? B : A) + (in ? (long long)r * K + col : 0), in ? 16 : 0);
    }
  };
  load(0, 0);
  cp_async_commit();
  for (int k = 0; k < KT; ++k) {
    if (k + 1 < KT) load(k + 1, (k + 1) % STAGES);
    cp_async_commit();
    cp_async_wait<1>();
    cta_sync();
    const u32 sa = base + k % STAGES * (BM + BN) * PITCH, sb = sa + BM * PITCH;
    #pragma unroll
    for (int kk = 0; kk < 2; ++kk) {
      u32 a[2][4], b[2][4];
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int row = wm * 32 + i * 16 + (lane & 15), chunk = kk * 2 + (lane >> 4);
        ldmatrix_x4(a[i], sa + row * PITCH + ((chunk ^ (row >> 1 & 3)) << 4));
      }
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int row = wn * 32 + i * 16 + (lane & 7) + (lane >> 4) * 8, chunk = kk * 2 + (lane >> 3 & 1);
        ldmatrix_x4(b[i], sb + row * PITCH + ((chunk ^ (row >> 1 & 3)) << 4));
      }
      #pragma unroll
      for (int i = 0; i < 2; ++i)
        #pragma unroll
        for (int j = 0; j < 4; ++j) mma_m16n8k16_f32_f16(acc[i][j], a[i], b[j / 2] + j % 2 * 2, acc[i][j]);
    }
    cta_sync();
  }
  #pragma unroll
  for (int i = 0; i < 2; ++i)
    #pragma unroll
    for (int j = 0; j < 4; ++j)
      #pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int row = m0 + wm * 32 + i * 16 + h * 8 + (lane >> 2), col = n0 + wn * 32 + j * 8 + (lane & 3) * 2;
        f16* p = C + (long long)row * N + col;
        if (row < M && col + 1 < N && N % 2 == 0) st_global_b32(p, f16x2_from_f32(acc[i][j][h * 2], acc[i][j][h * 2 + 1]));
        else if (row < M) {
          if (col < N) p[0] = f16_from_f32(acc[i][j][h * 2]);
          if (col + 1 < N) p[1] = f16_from_f32(acc[i][j][h * 2 + 1]);
        }
      }
}
"""


def ampere(m: int, n: int, k: int) -> Case:
    a, b, c = numbers(m, n, k, np.dtype(np.float16))
    return Case(
        f"ampere gemm {m}x{n}x{k}",
        AMPERE,
        [a, b, np.zeros((m, n), np.float16), m, n, k],
        {2: c.astype(np.float16)},
        threads=128,
        grid=(-(-m // 64), -(-n // 64), 1),
        shared=2 * 128 * 64,
        arch="sm_80",
    )


def cases() -> Iterator[Case]:
    yield hopper(200, 136, 264, 2)
    yield hopper(1, 8, 8, 1)
    yield hopper(300, 72, 200, 4, cm=2)
    yield hopper(256, 256, 128, 4)
    yield ampere(100, 72, 136)
    yield ampere(256, 256, 128)
