"""Cases of numbers: conversions, small arithmetic, mathematics, bits. Expected by numpy and ml_dtypes."""

from __future__ import annotations

from collections.abc import Iterator

import ml_dtypes
import numpy as np
from case import Case, kernel

F16, BF16 = np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)
E4M3, E5M2 = np.dtype(ml_dtypes.float8_e4m3fn), np.dtype(ml_dtypes.float8_e5m2)
N = 512


def floats(seed: int = 0, special: bool = True) -> np.ndarray:
    """Normal numbers of many sizes, halfway cases of every small type, and special ones."""
    rng = np.random.default_rng(seed)
    x = (rng.standard_normal(N) * 2.0 ** rng.integers(-18, 12, N)).astype(np.float32)
    x[:64] = (np.arange(64) - 32) / 16 + 1 / 32
    x[64:96] = 2.0 ** np.arange(-20, 12).astype(np.float32)
    if special:
        x[96:104] = [0.0, -0.0, 448, 464, 480, 57344, 65504, 65520]
    return x


def saturated(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    top = float(ml_dtypes.finfo(dtype).max)
    return np.clip(x, -top, top).astype(dtype)


def conversions() -> Iterator[Case]:
    x = floats()
    for name, dtype, arch in (("f16", F16, "sm_75"), ("bf16", BF16, "sm_80")):
        with np.errstate(over="ignore"):
            small = x.astype(dtype)
        text = kernel(
            "const float* x, u16* y, float* z",
            f"  const {name} s = {name}_from_f32(x[t]); y[t] = s.bits; z[t] = f32_from_{name}(s);",
        )
        yield Case(
            f"convert {name}",
            text,
            [x, np.zeros(N, np.uint16), np.zeros(N, np.float32)],
            {1: small.view(np.uint16), 2: small.astype(np.float32)},
            threads=N,
            arch=arch,
        )
        text = kernel(
            "const float* x, u32* y, float* z",
            f"  const u32 s = {name}x2_from_f32(x[2 * t], x[2 * t + 1]); y[t] = s;\n"
            f"  z[2 * t] = f32_from_{name}x2_low(s); z[2 * t + 1] = f32_from_{name}x2_high(s);",
        )
        yield Case(
            f"convert {name}x2",
            text,
            [x, np.zeros(N // 2, np.uint32), np.zeros(N, np.float32)],
            {1: small.view(np.uint32), 2: small.astype(np.float32)},
            threads=N // 2,
            arch="sm_80",
        )
    for name, dtype in (("e4m3", E4M3), ("e5m2", E5M2)):
        small = saturated(x, dtype)
        text = kernel(
            "const float* x, u8* y, float* z, u16* p, u32* h",
            f"  const {name} s = {name}_from_f32(x[t]); y[t] = s.bits; z[t] = f32_from_{name}(s);\n"
            f"  if (t % 2 == 0) {{ const u16 q = {name}x2_from_f32(x[t], x[t + 1]); p[t / 2] = q; h[t / 2] = f16x2_from_{name}x2(q); }}",
        )
        halves = small.astype(np.float32).astype(np.float16)
        yield Case(
            f"convert {name}",
            text,
            [
                x,
                np.zeros(N, np.uint8),
                np.zeros(N, np.float32),
                np.zeros(N // 2, np.uint16),
                np.zeros(N // 2, np.uint32),
            ],
            {
                1: small.view(np.uint8),
                2: small.astype(np.float32),
                3: small.view(np.uint16),
                4: halves.view(np.uint32),
            },
            threads=N,
            arch="sm_89",
        )
    bits = x.view(np.uint32)
    tf32 = (bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000)
    yield Case(
        "convert tf32",
        kernel("const float* x, u32* y", "  y[t] = tf32_from_f32(x[t]);"),
        [x, np.zeros(N, np.uint32)],
        {1: tf32},
        threads=N,
        arch="sm_80",
    )


REFERENCE = {
    "add": lambda a, b, c: a + b,
    "sub": lambda a, b, c: a - b,
    "mul": lambda a, b, c: a * b,
    "fma": lambda a, b, c: a * b + c,
    "max": lambda a, b, c: np.maximum(a, b),
    "min": lambda a, b, c: np.minimum(a, b),
}


def arithmetic() -> Iterator[Case]:
    rng = np.random.default_rng(1)
    for name, dtype in (("f16", F16), ("bf16", BF16)):
        a, b, c = (rng.standard_normal(N).astype(dtype) for _ in range(3))
        wide = [v.astype(np.float64) for v in (a, b, c)]
        lines, packed, wanted = [], [], []
        for i, (op, f) in enumerate(REFERENCE.items()):
            three = op == "fma"
            scalars = ", ".join(f"{name}{{{v}[t]}}" for v in ("a", "b", "c")[: 2 + three])
            lines.append(f"  y[{i * N} + t] = {name}_{op}({scalars}).bits;")
            pairs = ", ".join(f"((const u32*){v})[t]" for v in ("a", "b", "c")[: 2 + three])
            packed.append(f"  if (t < {N // 2}) ((u32*)y)[{i * N // 2} + t] = {name}x2_{op}({pairs});")
            wanted.append(f(*wide).astype(np.float32).astype(dtype))
        expected = np.concatenate(wanted).view(np.uint16)
        arguments = [v.view(np.uint16) for v in (a, b, c)]
        for label, body in ((name, lines), (name + "x2", packed)):
            yield Case(
                f"arithmetic {label}",
                kernel("const u16* a, const u16* b, const u16* c, u16* y", "\n".join(body)),
                [*arguments, np.zeros(len(expected), np.uint16)],
                {3: expected},
                threads=N,
                arch="sm_80",
            )


def mathematics() -> Iterator[Case]:
    rng = np.random.default_rng(2)
    x = rng.uniform(0.1, 4, N).astype(np.float32)
    w = x.astype(np.float64)
    from math import erf

    functions = {
        "exp2": np.exp2, "exp": np.exp, "log2": np.log2, "log": np.log, "sqrt": np.sqrt, "sin": np.sin, "cos": np.cos,
        "tanh": np.tanh, "rcp": lambda v: 1 / v, "rsqrt": lambda v: 1 / np.sqrt(v),
        "exp10": lambda v: 10**v, "log10": np.log10, "tan": np.tan, "erf": np.vectorize(erf), "floor": np.floor,
        "ceil": np.ceil, "trunc": np.trunc, "rint": np.rint, "fabs": np.abs, "atan": np.arctan, "sinh": np.sinh,
        "cosh": np.cosh, "log1p": np.log1p, "expm1": np.expm1, "cbrt": np.cbrt,
    }  # fmt: skip
    fast = ("exp2", "exp", "log2", "log", "sqrt", "sin", "cos", "tanh", "rcp", "rsqrt")
    for kind, listed, error in (("fast", fast, 2e-3), ("exact", tuple(functions), 2e-6)):
        body = "\n".join(f"  y[{i * N} + t] = {f}_{kind}(x[t]);" for i, f in enumerate(listed))
        wanted = np.concatenate([functions[f](w) for f in listed]).astype(np.float32)
        yield Case(
            f"mathematics {kind}",
            kernel("const float* x, float* y", body),
            [x, np.zeros(len(wanted), np.float32)],
            {1: wanted},
            threads=N,
            arch="sm_75",
            relative=error,
            absolute=error if kind == "fast" else 1e-6,
        )
    a, b = (rng.standard_normal(N).astype(np.float32) for _ in range(2))
    a[0], b[1] = np.nan, np.nan
    rows = {
        "div_fast(a[t], b[t])": a / b,
        "div_exact(a[t], b[t])": a / b,
        "fma_f32(a[t], b[t], a[t])": (a.astype(np.float64) * b + a).astype(np.float32),
        "max_f32(a[t], b[t])": np.fmax(a, b),
        "min_f32(a[t], b[t])": np.fmin(a, b),
        "max_nan_f32(a[t], b[t])": np.maximum(a, b),
        "min_nan_f32(a[t], b[t])": np.minimum(a, b),
    }
    body = "\n".join(f"  y[{i * N} + t] = {call};" for i, call in enumerate(rows))
    yield Case(
        "mathematics of two",
        kernel("const float* a, const float* b, float* y", body),
        [a, b, np.zeros(len(rows) * N, np.float32)],
        {2: np.concatenate(list(rows.values()))},
        threads=N,
        arch="sm_80",
        relative=1e-6,
    )


def bits() -> Iterator[Case]:
    rng = np.random.default_rng(3)
    a, b, c = (rng.integers(0, 2**32, N, dtype=np.uint32) for _ in range(3))
    s = a.view(np.int8).reshape(N, 4).astype(np.int64), b.view(np.int8).reshape(N, 4).astype(np.int64)
    u = a.view(np.uint8).reshape(N, 4).astype(np.int64), b.view(np.uint8).reshape(N, 4).astype(np.int64)
    small = c.astype(np.int64) % 1000
    both = np.concatenate([a.view(np.uint8).reshape(N, 4), b.view(np.uint8).reshape(N, 4)], 1)
    chosen = np.stack([both[np.arange(N), (c >> (4 * i)) & 7] for i in range(4)], 1).copy()
    wanted = {
        "(u32)dp4a_s32(a[t], b[t], (int)(c[t] % 1000))": ((s[0] * s[1]).sum(1) + small).astype(np.uint32),
        "(u32)dp4a_u32(a[t], b[t], (int)(c[t] % 1000))": ((u[0] * u[1]).sum(1) + small).astype(np.uint32),
        "permute_bytes(a[t], b[t], c[t] & 0x7777)": chosen.view(np.uint32).reshape(-1),
        "logic3<0xca>(a[t], b[t], c[t])": (a & b) | (~a & c),
        "float_as_bits(bits_as_float(a[t] & 0xbfffffff))": a & np.uint32(0xBFFFFFFF),
    }
    body = "\n".join(f"  y[{i * N} + t] = {call};" for i, call in enumerate(wanted))
    yield Case(
        "bits",
        kernel("const u32* a, const u32* b, const u32* c, u32* y", body),
        [a, b, c, np.zeros(len(wanted) * N, np.uint32)],
        {3: np.concatenate(list(wanted.values()))},
        threads=N,
        arch="sm_75",
    )


def cases() -> Iterator[Case]:
    yield from conversions()
    yield from arithmetic()
    yield from mathematics()
    yield from bits()
