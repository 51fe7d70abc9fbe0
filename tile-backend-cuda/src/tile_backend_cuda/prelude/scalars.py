"""Helpers of numbers: conversions of small floating types, packed arithmetic, fast and exact mathematics, bits and dot products."""

from __future__ import annotations

from collections.abc import Iterator

from .device_function import Helper
from .spell import asm, pure

CVT = "Data Movement and Conversion Instructions: cvt"
HALF = "Half Precision Floating-Point Instructions"
FLOAT = "Floating-Point Instructions"

# the host's decoder and encoder of each small type
DECODE = {"f16": "half", "bf16": "brain", "e4m3": "e4m3", "e5m2": "e5m2"}


def _row(name: str, returns: str, parameters: str, device: str, host: str, since: int = 75) -> Helper:
    return Helper(name, "scalar", returns, parameters, device, f"return {host};", CVT, since)


def _cvt(ptx: str, out: str, *ins: tuple[str, str]) -> str:
    return asm(ptx, [("=" + out, "r")], ins, volatile=False)


def _halves() -> Iterator[Helper]:
    """float16 and bfloat16, single and in pairs."""
    two = "float low, float high"
    for kind, since in (("f16", 75), ("bf16", 80)):
        d = DECODE[kind]
        made = _cvt(f"cvt.rn.{kind}.f32 %0, %1;", "h", ("f", "x"))
        yield _row(
            f"{kind}_from_f32",
            kind,
            "float x",
            f"u16 r; {made} return {kind}{{r}};",
            f"{kind}{{cuda::float_to_{d}(x)}}",
            since,
        )
        made = _cvt(f"cvt.rn.{kind}x2.f32 %0, %1, %2;", "r", ("f", "high"), ("f", "low"))
        host = f"(u32)cuda::float_to_{d}(low) | (u32)cuda::float_to_{d}(high) << 16"
        yield _row(f"{kind}x2_from_f32", "u32", two, f"u32 r; {made} return r;", host, 80)
    for name, kind, given, host in (
        ("f32_from_f16", "f16 x", "x.bits", "x.bits"),
        ("f32_from_f16x2_low", "u32 x", "(u16)x", "x & 0xffff"),
        ("f32_from_f16x2_high", "u32 x", "(u16)(x >> 16)", "x >> 16"),
    ):
        made = _cvt("cvt.f32.f16 %0, %1;", "f", ("h", given))
        yield _row(name, "float", kind, f"float r; {made} return r;", f"cuda::half_to_float({host})")
    # a bf16 is the upper half of a float: no instruction is needed, and none exists before sm_90
    for name, kind, given, host in (
        ("f32_from_bf16", "bf16 x", "(u32)x.bits << 16", "x.bits"),
        ("f32_from_bf16x2_low", "u32 x", "x << 16", "x & 0xffff"),
        ("f32_from_bf16x2_high", "u32 x", "x & 0xffff0000u", "x >> 16"),
    ):
        yield _row(name, "float", kind, f"return __uint_as_float({given});", f"cuda::brain_to_float({host})")


def _bytes(kind: str) -> Iterator[Helper]:
    """A type of 8 bits, which converts in pairs only; what is too large becomes the largest."""
    pair, to_half = f"cvt.rn.satfinite.{kind}x2.f32 %0, %1, %2;", f"cvt.rn.f16x2.{kind}x2 %0, %1;"
    single = _cvt(pair, "h", ("f", "0.0f"), ("f", "x"))
    both = _cvt(pair, "h", ("f", "high"), ("f", "low"))
    host = f"cuda::float_to_{kind}"
    yield _row(
        f"{kind}_from_f32",
        kind,
        "float x",
        f"u16 r; {single} return {kind}{{(u8)r}};",
        f"{kind}{{{host}(x)}}",
        89,
    )
    yield _row(
        f"{kind}x2_from_f32",
        "u16",
        "float low, float high",
        f"u16 r; {both} return r;",
        f"(u16)((u16){host}(low) | (u16){host}(high) << 8)",
        89,
    )
    half = f"(u32)cuda::float_to_half(cuda::{kind}_to_float({{}}))"
    yield _row(
        f"f16x2_from_{kind}x2",
        "u32",
        "u16 x",
        f"u32 r; {_cvt(to_half, 'r', ('h', 'x'))} return r;",
        f"{half.format('x & 255')} | {half.format('x >> 8')} << 16",
        89,
    )
    narrow = _cvt(to_half, "r", ("h", "(u16)x.bits"))
    widen = asm("cvt.f32.f16 %0, %1;", [("=f", "y")], [("h", "(u16)r")], volatile=False)
    yield _row(
        f"f32_from_{kind}",
        "float",
        f"{kind} x",
        f"u32 r; {narrow} float y; {widen} return y;",
        f"cuda::{kind}_to_float(x.bits)",
        89,
    )


def conversions() -> Iterator[Helper]:
    yield from _halves()
    yield pure(
        "tf32_from_f32",
        "scalar",
        "u32",
        "float x",
        "cvt.rna.tf32.f32 %0, %1;",
        "cuda::float_to_tf32(x)",
        CVT,
        since=80,
    )
    yield from _bytes("e4m3")
    yield from _bytes("e5m2")


OPERATIONS = ("add", "sub", "mul", "fma", "max", "min")
# bf16 has only fma (and max, min) before sm_90: a*1+b, b*-1+a, a*b+-0 are exact spellings of the others
BRAIN_FMA = {"add": "%1, {one}, %2", "sub": "%2, {minus}, %1", "mul": "%1, %2, {zero}"}
BRAIN_CONSTANTS = {
    "bf16": {"one": "0x3F80", "minus": "0xBF80", "zero": "0x8000"},
    "bf16x2": {"one": "0x3F803F80", "minus": "0xBF80BF80", "zero": "0x80008000"},
}


def _arithmetic(kind: str, operation: str) -> Helper:
    packed, brain = kind.endswith("x2"), kind.startswith("bf16")
    letter, register = ("r", "u32") if packed else ("h", "u16")
    names = "abc"[: 3 if operation == "fma" else 2]
    operands = ", ".join(f"%{i + 1}" for i in range(len(names)))
    rounding = "" if operation in ("max", "min") else ".rn"
    text = f"{operation}{rounding}.{kind} %0, {operands};"
    if brain and operation in BRAIN_FMA:
        constants = {k: f"c_{k}" for k in BRAIN_CONSTANTS[kind]}
        used = next(k for k in constants if "{" + k + "}" in BRAIN_FMA[operation])
        value = BRAIN_CONSTANTS[kind][used]
        width = "b32" if packed else "b16"
        text = f"{{\n.reg .{width} c;\nmov.{width} c, {value};\nfma.rn.{kind} %0, {BRAIN_FMA[operation].format(**{used: 'c'})};\n}}"
    taken = [(letter, n if packed else f"{n}.bits") for n in names]
    body = asm(text, [("=" + letter, "r")], taken, volatile=False)
    host = f"cuda::{'brain2' if brain else 'half2'}(cuda::{operation}_, " + ", ".join(
        n if packed else f"{n}.bits" for n in names
    )
    type_name = "u32" if packed else kind
    return Helper(
        f"{kind}_{operation}",
        "scalar",
        type_name,
        ", ".join(f"{type_name} {n}" for n in names),
        f"{register} r; {body} return {'r' if packed else f'{kind}{{r}}'};",
        f"return {host});" if packed else f"return {kind}{{(u16)({host}) & 0xffff)}};",
        HALF,
        since=80 if brain or operation in ("max", "min") else 75,
    )


def arithmetic() -> Iterator[Helper]:
    for kind in ("f16", "bf16", "f16x2", "bf16x2"):
        for operation in OPERATIONS:
            yield _arithmetic(kind, operation)


FAST = (
    ("exp2", "ex2.approx.ftz.f32", "exp2f(x)", 75),
    ("log2", "lg2.approx.ftz.f32", "log2f(x)", 75),
    ("rcp", "rcp.approx.ftz.f32", "1.0f / x", 75),
    ("rsqrt", "rsqrt.approx.ftz.f32", "rsqrtf(x)", 75),
    ("sqrt", "sqrt.approx.ftz.f32", "sqrtf(x)", 75),
    ("sin", "sin.approx.ftz.f32", "sinf(x)", 75),
    ("cos", "cos.approx.ftz.f32", "cosf(x)", 75),
    ("tanh", "tanh.approx.f32", "tanhf(x)", 75),
)
# the compiler's own functions of full accuracy; NVRTC knows their names without a header
EXACT = (
    *("exp2f exp", "expf exp", "exp10f exp", "logf log", "log2f log", "log10f log", "sinf sin", "cosf sin"),
    *("tanf sin", "tanhf tanh", "erff erf", "sqrtf sqrt", "rsqrtf rsqrt", "floorf cvt", "ceilf cvt"),
    *(
        "truncf cvt",
        "rintf cvt",
        "fabsf abs",
        "asinf sin",
        "acosf sin",
        "atanf sin",
        "sinhf sin",
        "coshf sin",
    ),
    *("log1pf log", "expm1f exp", "cbrtf sqrt"),
)


def mathematics() -> Iterator[Helper]:
    family = "math"
    for name, ptx, host, since in FAST:
        yield pure(f"{name}_fast", family, "float", "float x", f"{ptx} %0, %1;", host, FLOAT, since=since)
    log2e = "1.4426950408889634f"
    yield Helper(
        "exp_fast",
        family,
        "float",
        "float x",
        f"return exp2_fast(x * {log2e});",
        "return expf(x);",
        FLOAT,
        needs=("exp2_fast",),
    )
    yield Helper(
        "log_fast",
        family,
        "float",
        "float x",
        "return log2_fast(x) * 0.6931471805599453f;",
        "return logf(x);",
        FLOAT,
        needs=("log2_fast",),
    )
    yield pure(
        "div_fast", family, "float", "float a, float b", "div.approx.ftz.f32 %0, %1, %2;", "a / b", FLOAT
    )
    for row in EXACT:
        function = row.split()[0]
        name = f"{function.removesuffix('f')}_exact"
        yield Helper(
            name, family, "float", "float x", f"return {function}(x);", f"return {function}(x);", FLOAT
        )
    yield pure("rcp_exact", family, "float", "float x", "rcp.rn.f32 %0, %1;", "1.0f / x", FLOAT)
    yield pure("div_exact", family, "float", "float a, float b", "div.rn.f32 %0, %1, %2;", "a / b", FLOAT)
    two = "float a, float b"
    for function in ("powf", "fmodf", "atan2f", "hypotf"):
        call = f"return {function}(a, b);"
        yield Helper(f"{function.removesuffix('f')}_exact", family, "float", two, call, call, FLOAT)
    yield pure(
        "fma_f32",
        family,
        "float",
        "float a, float b, float c",
        "fma.rn.f32 %0, %1, %2, %3;",
        "fmaf(a, b, c)",
        FLOAT,
    )
    # max and min give the other operand for a NaN; the _nan forms give the NaN
    for op in ("max", "min"):
        yield pure(f"{op}_f32", family, "float", two, f"{op}.f32 %0, %1, %2;", f"f{op}f(a, b)", FLOAT)
        yield pure(
            f"{op}_nan_f32",
            family,
            "float",
            two,
            f"{op}.NaN.f32 %0, %1, %2;",
            f"a != a || b != b ? NAN : f{op}f(a, b)",
            FLOAT,
            since=80,
        )
    unary = (
        ("exp2_fast_f16x2", "ex2.approx.f16x2", "half2", "exp2f", 75),
        ("tanh_fast_f16x2", "tanh.approx.f16x2", "half2", "tanhf", 75),
        ("exp2_fast_bf16x2", "ex2.approx.ftz.bf16x2", "brain2", "exp2f", 90),
        ("tanh_fast_bf16x2", "tanh.approx.bf16x2", "brain2", "tanhf", 90),
    )
    for name, ptx, decoder, function, since in unary:
        host = f"cuda::{decoder}([](float a, float, float) {{ return {function}(a); }}, x, 0u)"
        yield pure(name, family, "u32", "u32 x", f"{ptx} %0, %1;", host, HALF, since=since)


def bits() -> Iterator[Helper]:
    family = "bits"
    isa = "Integer Arithmetic Instructions: dp4a"
    yield pure(
        "dp4a_s32",
        family,
        "int",
        "u32 a, u32 b, int c",
        "dp4a.s32.s32 %0, %1, %2, %3;",
        "cuda::dot4(a, b, c, true)",
        isa,
    )
    yield pure(
        "dp4a_u32",
        family,
        "int",
        "u32 a, u32 b, int c",
        "dp4a.u32.u32 %0, %1, %2, %3;",
        "cuda::dot4(a, b, c, false)",
        isa,
    )
    for kind, one in (("s8", "dp4a_s32"), ("u8", "dp4a_u32")):
        yield Helper(
            f"dot4_{kind}",
            family,
            "int",
            "const void* a, const void* b, int c",
            f"return {one}(*reinterpret_cast<const u32*>(a), *reinterpret_cast<const u32*>(b), c);",
            f"return {one}(cuda::load<u32>(a), cuda::load<u32>(b), c);",
            isa,
            needs=(one,),
        )
    yield pure(
        "permute_bytes",
        family,
        "u32",
        "u32 a, u32 b, u32 selector",
        "prmt.b32 %0, %1, %2, %3;",
        "cuda::permute(a, b, selector)",
        "Data Movement and Conversion Instructions: prmt",
    )
    logic = asm(
        "lop3.b32 %0, %1, %2, %3, %4;",
        [("=r", "r")],
        [("r", "a"), ("r", "b"), ("r", "c"), ("n", "TABLE")],
        volatile=False,
    )
    yield Helper(
        "logic3",
        family,
        "u32",
        "u32 a, u32 b, u32 c",
        f"u32 r; {logic} return r;",
        "return cuda::logic3(a, b, c, TABLE);",
        "Logic and Shift Instructions: lop3",
        template="int TABLE",
    )
    for name, back, given, device, host in (
        ("float_as_bits", "u32", "float x", "__float_as_uint(x)", "cuda::bits_of(x)"),
        ("bits_as_float", "float", "u32 x", "__uint_as_float(x)", "cuda::float_of(x)"),
    ):
        yield Helper(
            name,
            family,
            back,
            given,
            f"return {device};",
            f"return {host};",
            "Data Movement and Conversion Instructions: mov",
        )


def helpers() -> Iterator[Helper]:
    yield from conversions()
    yield from arithmetic()
    yield from mathematics()
    yield from bits()
