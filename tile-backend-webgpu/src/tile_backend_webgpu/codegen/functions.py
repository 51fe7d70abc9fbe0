"""Scalar functions in WGSL: the spelling of each intrinsic, and the text of those that WGSL lacks or leaves imprecise."""

from __future__ import annotations

import re

# Intrinsics of floats, all computed in float32. Not there: division and roots with IEEE rounding, which WGSL does not promise
# (Floating Point Accuracy: 2.5 ULP of a quotient).
FLOAT = {
    **{
        name: name
        for name in ("exp", "exp2", "log", "log2", "sqrt", "floor", "ceil", "round", "trunc", "fma", "abs")
    },
    **{
        name: f"tile_{name}"
        for name in ("exp10", "log10", "sin", "cos", "tan", "tanh", "erf", "sigmoid", "pow")
    },
    **{name: f"tile_{name}" for name in ("min", "max", "floordiv", "floormod", "truncdiv", "truncmod")},
    **{name: f"tile_{name}" for name in ("isnan", "isinf", "isfinite")},
    **{f"__{name}": name for name in ("exp", "exp2", "log", "log2", "sin", "cos", "tan")},
    "__exp10": "tile_exp10",
    "__log10": "tile_log10",
    "__rcp": "tile_rcp",
    "rsqrt": "inverseSqrt",
    **{f"ieee_{name}": f"tile_ieee_{name}" for name in ("add", "sub", "mul")},
}

# Intrinsics of integers; ``?`` stands for the type.
INTEGER = {
    "min": "min",
    "max": "max",
    "abs": "abs",
    "popcount": "countOneBits",
    "clz": "countLeadingZeros",
    "pow": "tile_power_?",
    "floordiv": "tile_floordiv_?",
    "floormod": "tile_floormod_?",
}

# A `var` keeps front ends from evaluating these while they read the shader, where values that are not finite are errors
# (WGSL, Floating Point Evaluation). That a value is NaN is told by its bits: compilers may take comparisons
# for granted that only NaN fails, and do (a != a is false under Mesa's lavapipe).
TEXT = r"""
fn tile_infinity() -> f32 { var bits = 0x7f800000u; return bitcast<f32>(bits); }
fn tile_nan() -> f32 { var bits = 0x7fc00000u; return bitcast<f32>(bits); }
fn tile_isnan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }
fn tile_isinf(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) == 0x7f800000u; }
fn tile_isfinite(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) < 0x7f800000u; }
fn tile_max(a: f32, b: f32) -> f32 { return select(select(max(a, b), a, tile_isnan(b)), b, tile_isnan(a)); }
fn tile_min(a: f32, b: f32) -> f32 { return select(select(min(a, b), a, tile_isnan(b)), b, tile_isnan(a)); }
fn tile_round_float16(x: f32) -> f32 { return unpack2x16float(pack2x16float(vec2<f32>(x, 0.0f))).x; }
fn tile_round_bfloat16(x: f32) -> f32 {
  let bits = bitcast<u32>(x);
  let rounded = (bits + 0x7fffu + ((bits >> 16u) & 1u)) & 0xffff0000u;
  return bitcast<f32>(select(rounded, 0x7fc00000u, tile_isnan(x)));
}
fn tile_floordiv(a: f32, b: f32) -> f32 { return floor(a / b); }
fn tile_floormod(a: f32, b: f32) -> f32 { return a - floor(a / b) * b; }
fn tile_truncdiv(a: f32, b: f32) -> f32 { return trunc(a / b); }
fn tile_truncmod(a: f32, b: f32) -> f32 { return a - trunc(a / b) * b; }
fn tile_floordiv_i32(a: i32, b: i32) -> i32 {
  if (b == 0) { return 0; }
  let q = a / b;
  return q - select(0, 1, q * b != a && (a < 0) != (b < 0));
}
fn tile_floormod_i32(a: i32, b: i32) -> i32 { return select(a - tile_floordiv_i32(a, b) * b, 0, b == 0); }
fn tile_floordiv_u32(a: u32, b: u32) -> u32 { if (b == 0u) { return 0u; } return a / b; }
fn tile_floormod_u32(a: u32, b: u32) -> u32 { if (b == 0u) { return 0u; } return a % b; }
fn tile_power_i32(a: i32, b: i32) -> i32 {
  var out = 1;
  var base = a;
  for (var n = b; n > 0; n = n >> 1u) {
    if ((n & 1) != 0) { out = out * base; }
    base = base * base;
  }
  return out;
}
fn tile_power_u32(a: u32, b: u32) -> u32 { return bitcast<u32>(tile_power_i32(bitcast<i32>(a), bitcast<i32>(b))); }
fn tile_exp10(x: f32) -> f32 {
  let whole = round(x * 3.321928f);
  return exp2(whole) * exp2(fma(x, 7.0595e-8f, fma(x, 3.321928f, -whole)));
}
fn tile_log10(x: f32) -> f32 { return log2(x) * 0.30103f; }
fn tile_pow(a: f32, b: f32) -> f32 {
  if (b == 0.0f) { return 1.0f; }
  let size = exp2(b * log2(abs(a)));
  if (a >= 0.0f || tile_isnan(a)) { return size; }
  if (floor(b) != b) { return tile_nan(); }
  return select(size, -size, abs(b - 2.0f * floor(b * 0.5f)) == 1.0f);
}
fn tile_sigmoid(x: f32) -> f32 { return 1.0f / (1.0f + exp(-x)); }
fn tile_tanh_near(x: f32) -> f32 {
  let s = x * x;
  var p = -0.005856427829712629f;
  p = fma(p, s, 0.02075747586786747f);
  p = fma(p, s, -0.05376992002129555f);
  p = fma(p, s, 0.13331705331802368f);
  p = fma(p, s, -0.3333328366279602f);
  p = fma(p, s, 1.0f);
  return p * x;
}
fn tile_tanh(x: f32) -> f32 {
  let size = 1.0f - 2.0f / (exp(2.0f * min(abs(x), 10.0f)) + 1.0f);
  let value = select(select(size, -size, x < 0.0f), tile_tanh_near(x), abs(x) < 0.6f);
  return select(value, x, tile_isnan(x));
}
fn tile_erf_near(x: f32) -> f32 {
  let s = x * x;
  var p = -9.673591193859465e-06f;
  p = fma(p, s, 0.00011268253729213029f);
  p = fma(p, s, -0.0008484396385028958f);
  p = fma(p, s, 0.005221053492277861f);
  p = fma(p, s, -0.026865437626838684f);
  p = fma(p, s, 0.11283782869577408f);
  p = fma(p, s, -0.37612637877464294f);
  p = fma(p, s, 1.128379225730896f);
  return p * x;
}
fn tile_erf_far(a: f32) -> f32 {
  var p = 1.6140616025950294e-06f;
  p = fma(p, a, -4.559062290354632e-05f);
  p = fma(p, a, 0.0005927695310674608f);
  p = fma(p, a, -0.004740222357213497f);
  p = fma(p, a, 0.02636471763253212f);
  p = fma(p, a, -0.10997824370861053f);
  p = fma(p, a, -0.6319370865821838f);
  p = fma(p, a, -1.1301666498184204f);
  p = fma(p, a, 0.0003032130189239979f);
  return 1.0f - exp(p);
}
fn tile_erf(x: f32) -> f32 {
  let size = tile_erf_far(min(abs(x), 4.0f));
  let value = select(select(size, -size, x < 0.0f), tile_erf_near(x), abs(x) < 1.0f);
  return select(value, x, tile_isnan(x));
}
fn tile_quarter(x: f32) -> f32 {
  let k = round(x * 0.63661975f);
  return fma(-k, 7.54979e-8f, fma(-k, 4.837513e-4f, fma(-k, 1.5703125f, x)));
}
fn tile_sin_near(x: f32) -> f32 {
  let s = x * x;
  var p = 2.717349389058654e-06f;
  p = fma(p, s, -0.00019839202286675572f);
  p = fma(p, s, 0.008333329111337662f);
  p = fma(p, s, -0.1666666716337204f);
  p = fma(p, s, 1.0f);
  return p * x;
}
fn tile_cos_near(x: f32) -> f32 {
  let s = x * x;
  var p = 2.4379880414926447e-05f;
  p = fma(p, s, -0.0013886619126424193f);
  p = fma(p, s, 0.04166661575436592f);
  p = fma(p, s, -0.5f);
  p = fma(p, s, 1.0f);
  return p;
}
fn tile_wave(x: f32, ahead: i32) -> f32 {
  let turn = (i32(round(x * 0.63661975f)) + ahead) & 3;
  let r = tile_quarter(x);
  let value = select(tile_sin_near(r), tile_cos_near(r), (turn & 1) == 1);
  return select(value, -value, turn >= 2);
}
fn tile_sin(x: f32) -> f32 { return select(sin(x), tile_wave(x, 0), abs(x) < 8192.0f); }
fn tile_cos(x: f32) -> f32 { return select(cos(x), tile_wave(x, 1), abs(x) < 8192.0f); }
fn tile_tan(x: f32) -> f32 { return tile_sin(x) / tile_cos(x); }
fn tile_ieee_add(a: f32, b: f32) -> f32 { return a + b; }
fn tile_ieee_sub(a: f32, b: f32) -> f32 { return a - b; }
fn tile_ieee_mul(a: f32, b: f32) -> f32 { return a * b; }
fn tile_rcp(a: f32) -> f32 { return 1.0f / a; }
"""

NAME = re.compile(r"\btile_\w+(?=\()")


def _by_name() -> dict[str, str]:
    parts = re.split(r"^(?=fn )", TEXT.strip(), flags=re.MULTILINE)
    return {NAME.search(part)[0]: part.strip() for part in parts if part}  # type: ignore[index]


def needed(text: str) -> str:
    """The functions that a text calls, and those that they call, in the order of the table."""
    table = _by_name()
    found: set[str] = set()
    waiting = set(NAME.findall(text))
    while waiting:
        name = waiting.pop()
        if name in table and name not in found:
            found.add(name)
            waiting |= set(NAME.findall(table[name]))
    return "\n".join(body for name, body in table.items() if name in found)
