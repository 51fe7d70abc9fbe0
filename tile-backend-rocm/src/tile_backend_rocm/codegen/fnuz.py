"""The 8-bit floats of CDNA3 as C++ text: types and conversions, for sources that have ``tile_bits`` and ``tile_float``."""

from __future__ import annotations

# The kinds of 8-bit floats without infinities and without a negative zero, whose code is the only NaN: what overflows becomes that.
FNUZ = r"""
struct fp8_e4m3_fnuz_t { unsigned char bits; };
struct fp8_e5m2_fnuz_t { unsigned char bits; };

template <int E, int M> TILE_DEVICE float tile_from_fnuz_byte(unsigned char b) {
  constexpr int bias = 1 << (E - 1);
  int exponent = (b >> M) & ((1 << E) - 1), mantissa = b & ((1 << M) - 1);
  float magnitude;
  if (b == 0x80)
    magnitude = TILE_NAN;
  else if (exponent == 0)
    magnitude = (float)mantissa * tile_float((unsigned int)(127 + 1 - bias - M) << 23);
  else
    magnitude = tile_float((unsigned int)(exponent + 127 - bias) << 23 | (unsigned int)mantissa << (23 - M));
  return b & 0x80 ? -magnitude : magnitude;
}
template <int E, int M> TILE_DEVICE unsigned char tile_to_fnuz_byte(float x) {
  constexpr int bias = 1 << (E - 1);
  unsigned int u = tile_bits(x), sign = u >> 24 & 0x80, bits = u & 0x7fffffff;
  if (bits >= 0x7f800000) return 0x80;
  int exponent = (int)(bits >> 23) - 127 + bias;
  unsigned int code;
  if (exponent <= 0) {
    // subnormal: the float's adder rounds to nearest even at the weight of the last place
    float step = tile_float((unsigned int)(127 + 1 - bias - M + 23) << 23);
    code = tile_bits(tile_float(bits) + step) - tile_bits(step);
  } else {
    unsigned int rounded = bits + ((1u << (22 - M)) - 1) + (bits >> (23 - M) & 1);
    code = (rounded >> (23 - M)) - ((unsigned int)(127 - bias) << M);
  }
  if (code == 0) return 0;
  return (unsigned char)(code > 0x7f ? 0x80 : sign | code);
}
TILE_DEVICE float float8_e4m3fnuz_to_float(fp8_e4m3_fnuz_t x) { return tile_from_fnuz_byte<4, 3>(x.bits); }
TILE_DEVICE float float8_e5m2fnuz_to_float(fp8_e5m2_fnuz_t x) { return tile_from_fnuz_byte<5, 2>(x.bits); }
TILE_DEVICE fp8_e4m3_fnuz_t float_to_float8_e4m3fnuz(float x) { return {tile_to_fnuz_byte<4, 3>(x)}; }
TILE_DEVICE fp8_e5m2_fnuz_t float_to_float8_e5m2fnuz(float x) { return {tile_to_fnuz_byte<5, 2>(x)}; }
"""
