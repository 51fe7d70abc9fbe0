"""Atomic updates as text: for each address space the functions that generated kernels call.

"Metal Shading Language Specification" 4.0, 6.15: atomics are of 32 bits (64-bit ones know no addition), floats are added in
device memory only, and every order is relaxed. Everything else is a loop of compare and exchange of the word that holds the
element: a buffer is a whole number of words, as its memory comes in pages.
"""

from __future__ import annotations

OPERATIONS = r"""
struct tile_op_add { template <class T> static T of(T a, T b) { return a + b; } };
struct tile_op_max {
  template <class T> static T of(T a, T b) { return a < b ? b : a; }
  static float of(float a, float b) { return metal::fmax(a, b); }
};
struct tile_op_min {
  template <class T> static T of(T a, T b) { return b < a ? b : a; }
  static float of(float a, float b) { return metal::fmin(a, b); }
};
struct tile_op_or { template <class T> static T of(T a, T b) { return a | b; } };
struct tile_op_and { template <class T> static T of(T a, T b) { return a & b; } };
struct tile_op_xor { template <class T> static T of(T a, T b) { return a ^ b; } };
struct tile_op_store { template <class T> static T of(T, T b) { return b; } };

// What 16-bit elements are computed in: `wide`.
template <class T> struct tile_short { using wide = int; };
template <> struct tile_short<ushort> { using wide = uint; };
template <> struct tile_short<half> { using wide = float; };
#if __METAL_VERSION__ >= 310
template <> struct tile_short<bfloat> { using wide = float; };
#endif
template <class Op, class T> TILE_DEVICE uint tile_short_update(uint word, uint shift, T value) {
  using W = typename tile_short<T>::wide;
  const T old = as_type<T>(ushort(word >> shift));
  const ushort fresh = as_type<ushort>(T(Op::of(W(old), W(value))));
  return (word & ~(0xffffu << shift)) | uint(fresh) << shift;
}
"""

LOOPS = r"""
template <class Op, class T, int BYTES> struct tile_swap_@ {
  static T run(@ T* at, T value) {
    @ atomic_uint* word = reinterpret_cast<@ atomic_uint*>(at);
    uint seen = metal::atomic_load_explicit(word, metal::memory_order_relaxed);
    while (!metal::atomic_compare_exchange_weak_explicit(word, &seen, as_type<uint>(Op::of(as_type<T>(seen), value)),
                                                         metal::memory_order_relaxed, metal::memory_order_relaxed)) {}
    return as_type<T>(seen);
  }
};
template <class Op, class T> struct tile_swap_@<Op, T, 2> {
  static T run(@ T* at, T value) {
    const uint odd = uint(reinterpret_cast<ulong>(at) & 2);
    @ atomic_uint* word = reinterpret_cast<@ atomic_uint*>(reinterpret_cast<@ char*>(at) - odd);
    uint seen = metal::atomic_load_explicit(word, metal::memory_order_relaxed);
    while (!metal::atomic_compare_exchange_weak_explicit(word, &seen, tile_short_update<Op>(seen, odd * 8, value),
                                                         metal::memory_order_relaxed, metal::memory_order_relaxed)) {}
    return as_type<T>(ushort(seen >> (odd * 8)));
  }
};
"""

ANY = """template <class T> TILE_DEVICE T tile_atomic_{op}_{space}({space} T* at, T value) {{
  return tile_swap_{space}<tile_op_{op}, T, sizeof(T)>::run(at, value);
}}
"""
LOAD = """template <class T> TILE_DEVICE T tile_atomic_load_{space}({space} T* at) {{
  const uint odd = sizeof(T) == 2 ? uint(reinterpret_cast<ulong>(at) & 2) : 0;
  {space} atomic_uint* word = reinterpret_cast<{space} atomic_uint*>(reinterpret_cast<{space} char*>(at) - odd);
  const uint seen = metal::atomic_load_explicit(word, metal::memory_order_relaxed);
  return tile_part<T, sizeof(T)>::of(seen, odd * 8);
}}
"""
PART = r"""
template <class T, int BYTES> struct tile_part { static T of(uint word, uint) { return as_type<T>(word); } };
template <class T> struct tile_part<T, 2> {
  static T of(uint word, uint shift) { return as_type<T>(ushort(word >> shift)); }
};
"""
NATIVE = """TILE_DEVICE {type} tile_atomic_{op}_{space}({space} {type}* at, {type} value) {{
  return metal::{function}(reinterpret_cast<{space} atomic_{type}*>(at), value, metal::memory_order_relaxed);
}}
"""

OPS = ("add", "max", "min", "or", "and", "xor", "store")
FUNCTIONS = {
    "store": "atomic_exchange_explicit",
    **{op: f"atomic_fetch_{op}_explicit" for op in OPS if op != "store"},
}
# (address space, type) -> operations that the hardware has
INSTRUCTIONS = {
    ("device", "int"): OPS,
    ("device", "uint"): OPS,
    ("device", "float"): ("add",),
    ("threadgroup", "int"): OPS,
    ("threadgroup", "uint"): OPS,
}


def _of(space: str) -> str:
    parts = [LOOPS.replace("@", space)]
    parts += [ANY.format(op=op, space=space) for op in OPS]
    parts.append(LOAD.format(space=space))
    parts += [
        NATIVE.format(op=op, space=space, type=type, function=FUNCTIONS[op])
        for (where, type), ops in INSTRUCTIONS.items()
        if where == space
        for op in ops
    ]
    return "".join(parts)


ATOMICS = {space: _of(space) for space in ("device", "threadgroup")}
