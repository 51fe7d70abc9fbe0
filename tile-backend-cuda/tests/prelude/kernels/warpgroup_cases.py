"""Cases of wgmma: every type, majors, swizzles, A from shared memory and from registers; D as the layouts of ``atoms`` place it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from case import Case, kernel
from matrix_cases import BITS, NUMPY, fragments, matrix, register_of

from tile_backend_cuda import atoms
from tile_backend_cuda.prelude.warpgroup import name_of


def image(x: np.ndarray, span: int, transposed: bool) -> tuple[np.ndarray, int, int, int]:
    """Bytes in shared memory of a matrix (M or N, K), the leading and the stride offset, and bytes from one instruction's K to the next."""
    mn, k = np.meshgrid(np.arange(x.shape[0]), np.arange(x.shape[1]), indexing="ij")
    size, depth = x.itemsize, x.shape[1]
    per = 16 // size
    if not transposed and span:
        leading, stride, step = 16, 8 * span, 32
        at = mn * span + k * size
    elif not transposed:
        leading, stride = 128, 128 * (depth // per)
        step = 256
        at = mn // 8 * stride + k // per * leading + mn % 8 * 16 + k % per * size
    elif span:
        wide = span // size
        leading, stride = depth * span, 8 * span
        step = 2 * stride
        at = mn // wide * leading + k // 8 * stride + k % 8 * span + mn % wide * size
    else:
        leading, stride = 128, 16 * depth
        step = 2 * leading
        at = mn // 8 * stride + k // 8 * leading + k % 8 * 16 + mn % 8 * size
    if span:
        at = at ^ ((at >> 7) % (span // 16)) << 4
    total = int(at.max()) + size
    raw = np.zeros(-(-total // 1024) * 1024, np.uint8)
    for byte in range(size):
        raw[at + byte] = x.view(np.uint8).reshape(*x.shape, size)[..., byte]
    return raw, leading, stride, step


def case(
    n: int,
    d: str,
    a: str,
    b: str,
    span: int = 128,
    *,
    rs: bool = False,
    at: bool = False,
    bt: bool = False,
    steps: int = 2,
) -> Case:
    """``steps`` instructions of K = 32 bytes, the first overwriting."""
    k = 32 // NUMPY[a].itemsize
    x, y = matrix(a, (64, k * steps), n), matrix(b, (n, k * steps), n + 1)
    wide = np.int64 if d == "s32" else np.float64
    wanted = (x.astype(wide) @ y.astype(wide).T).astype(NUMPY[d])
    raw_b, lead_b, stride_b, step_b = image(y, span, bt)
    raw_a, lead_a, stride_a, step_a = image(x, span, at)
    if rs:
        parts = [
            fragments(np.ascontiguousarray(x[:, i * k : (i + 1) * k]), atoms.wgmma_a(BITS[a]), a, 128)
            for i in range(steps)
        ]
        given_a = np.concatenate(parts, 1).view(np.uint32)
        setup = f"u32 a[{4 * steps}];\n  #pragma unroll\n  for (int i = 0; i < {4 * steps}; ++i) a[i] = x[t * {4 * steps} + i];"
        first = "a + 4 * {i}"
        place_b = 0
    else:
        given_a = raw_a.view(np.uint32)
        place_b = raw_a.nbytes
        setup = f"for (int i = t; i < {raw_a.nbytes // 4}; i += 128) st_shared_b32(s + 4 * i, x[i]);\n  const u64 da = wgmma_descriptor(s, {lead_a}, {stride_a}, {span});"
        first = f"wgmma_descriptor_add(da, {{i}} * {step_a})"
    per = 2 if d == "f16" else 1
    count = n // 2 // per
    kind, _ = register_of(d)
    suffix = {"float": "f32", "int": "s32", "u32": "b32"}[kind]
    name = name_of(n, d, a, b, rs=rs, a_transposed=at, b_transposed=bt)
    calls = "\n".join(
        f"  {name}(d, {first.format(i=i)}, wgmma_descriptor_add(db, {i} * {step_b}), {int(i > 0)});"
        for i in range(steps)
    )
    body = f"""  const u32 s = shared_base();
  {setup}
  for (int i = t; i < {raw_b.nbytes // 4}; i += 128) st_shared_b32(s + {place_b} + 4 * i, y[i]);
  const u64 db = wgmma_descriptor(s + {place_b}, {lead_b}, {stride_b}, {span});
  {kind} d[{count}];
  zero_registers_{suffix}<{count}>(d);
  fence_proxy_async_shared(); cta_sync();
  wgmma_fence();
{calls}
  wgmma_commit(); wgmma_wait<0>();
  hold_registers_{suffix}<{count}>(d);
  #pragma unroll
  for (int i = 0; i < {count}; ++i) z[t * {count} + i] = d[i];"""
    spread = fragments(wanted, atoms.wgmma_c(n), d, 128)
    return Case(
        f"{name} swizzle {span}",
        kernel(f"const u32* x, const u32* y, {kind}* z", body),
        [given_a, raw_b.view(np.uint32), np.zeros_like(spread)],
        {2: spread},
        threads=128,
        shared=place_b + raw_b.nbytes + 1024,
        modes=("late",) if n > 64 else ("early", "late"),
        tags={"exact": True},
    )


def cases() -> Iterator[Case]:
    for a in ("f16", "bf16"):
        for span in (0, 32, 64, 128):
            steps = max(1, span // 32) if span else 2
            yield case(64, "f32", a, a, span, steps=steps)
            yield case(64, "f32", a, a, span, at=True, bt=True)
    yield case(128, "f32", "bf16", "bf16", 64, at=True)
    yield case(128, "f32", "bf16", "bf16", 32, bt=True, steps=1)
    for n in (8, 24, 104, 176, 256):
        yield case(n, "f32", "bf16", "bf16")
    for n in (8, 104, 256):
        yield case(n, "f16", "f16", "f16")
        yield case(n, "f32", "f16", "f16", rs=True)
    yield case(64, "f32", "bf16", "bf16", 128, rs=True, bt=True)
    yield case(64, "f32", "tf32", "tf32")
    yield case(96, "f32", "tf32", "tf32", 64, rs=True)
    for a in ("e4m3", "e5m2"):
        for b in ("e4m3", "e5m2"):
            yield case(64, "f32", a, b)
        yield case(40, "f16", a, a, 64)
        yield case(64, "f32", a, "e4m3", rs=True)
    for a in ("s8", "u8"):
        for b in ("s8", "u8"):
            yield case(64, "s32", a, b)
        yield case(24, "s32", a, a, 32, steps=1)
        yield case(96, "s32", a, a, 0, rs=True)
