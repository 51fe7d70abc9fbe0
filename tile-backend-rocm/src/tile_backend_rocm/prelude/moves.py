"""Helpers that move several elements at once, and exchanges between the lanes of a wave.

Moves are plain C++ on generic pointers, not assembly: the compiler sees from where a pointer comes which instruction it needs,
and keeps arrays in registers.
"""

from __future__ import annotations

from collections.abc import Iterator

from .device_function import Helper

LOADS = "MI300 ISA, vector memory and LDS: GLOBAL_LOAD_DWORDX4, DS_READ_B128"
LANES = "MI300 ISA, DS_SWIZZLE_B32, DS_BPERMUTE_B32, data parallel primitives (DPP)"
KINDS = {8: "u8", 16: "u16", 32: "u32", 64: "u32x2", 128: "u32x4"}

# xor of the lane number as a DPP control: quad_perm of the four lanes, row_half_mirror, row_ror:8, row_mirror
DPP = {1: 0xB1, 2: 0x4E, 3: 0x1B, 7: 0x141, 8: 0x128, 15: 0x140}


def _moves(bits: int, kind: str) -> Iterator[Helper]:
    given = "void* to, const void* from"
    device = f"*reinterpret_cast<{kind}*>(to) = *reinterpret_cast<const {kind}*>(from);"
    host = f"hip::store(to, hip::load<{kind}>(from));"
    yield Helper(f"move_b{bits}", "void", given, device, LOADS, host)
    device = (
        f"{kind} v = {{}}; if (inside) v = *reinterpret_cast<const {kind}*>(from); "
        f"*reinterpret_cast<{kind}*>(to) = v;"
    )
    host = f"{kind} v = {{}}; if (inside) v = hip::load<{kind}>(from); hip::store(to, v);"
    yield Helper(f"fetch_b{bits}", "void", f"{given}, bool inside", device, LOADS, host)


def _lanes() -> Iterator[Helper]:
    yield Helper(
        "lane_number",
        "u32",
        "",
        "return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u));",
        "MI300 ISA, V_MBCNT_LO_U32_B32",
        "return machine::here->lane;",
        note="of a wave of 32 lanes the high half of the mask adds nothing",
    )
    yield Helper(
        "dpp_move",
        "u32",
        "u32 v",
        "return (u32)__builtin_amdgcn_mov_dpp((int)v, CONTROL, 0xf, 0xf, true);",
        LANES,
        "return hip::dpp(v, CONTROL);",
        template="int CONTROL",
    )
    yield Helper(
        "lds_swizzle",
        "u32",
        "u32 v",
        "return (u32)__builtin_amdgcn_ds_swizzle((int)v, PATTERN);",
        LANES,
        "return hip::swizzle(v, PATTERN);",
        template="int PATTERN",
    )
    yield Helper(
        "lane_gather",
        "u32",
        "u32 v, u32 lane",
        "return (u32)__builtin_amdgcn_ds_bpermute((int)(lane << 2), (int)v);",
        LANES,
        "return hip::gather(v, lane << 2);",
        note="the number of a lane in bytes; it wraps at the size of the wave",
    )


def _swap() -> Iterator[Helper]:
    """The lane whose number differs by the bits of D."""
    ways = [f"if constexpr (D == {d}) return dpp_move<{control:#x}>(v);" for d, control in DPP.items()]
    # DS_SWIZZLE in bit mode: and-mask 0x1f, xor-mask in bits 10 to 14, among 32 lanes
    ways.append("if constexpr (D < 32) return lds_swizzle<(D & 0x1f) << 10 | 0x1f>(v);")
    needs = ("dpp_move", "lds_swizzle", "lane_gather", "lane_number")
    ways.append("return lane_gather(v, lane_number() ^ (u32)D);")
    yield Helper("swap_b32", "u32", "u32 v", " ".join(ways), LANES, template="int D", needs=needs)


def _between() -> Iterator[Helper]:
    below = "const u32 lane = lane_number(); return lane_gather(v, lane < (u32)n ? lane : lane - (u32)n);"
    yield Helper("below_b32", "u32", "u32 v, int n", below, LANES, needs=("lane_gather", "lane_number"))
    of = "return lane_gather(v, (u32)n);"
    yield Helper("of_lane_b32", "u32", "u32 v, int n", of, LANES, needs=("lane_gather",))


def _wider() -> Iterator[Helper]:
    """The same for values of 64 bits and for floats."""
    for name, template, given, more in (
        ("swap", "int D", "", ""),
        ("below", "", ", int n", ", n"),
        ("of_lane", "", ", int n", ", n"),
    ):
        one = f"{name}_b32{'<D>' if template else ''}"
        wide = f"return (u64){one}((u32)(v >> 32){more}) << 32 | {one}((u32)v{more});"
        yield Helper(
            f"{name}_b64", "u64", f"u64 v{given}", wide, LANES, template=template, needs=(f"{name}_b32",)
        )
        real = f"return float_of_bits({one}(bits_of_float(v){more}));"
        needs = (f"{name}_b32", "float_of_bits", "bits_of_float")
        yield Helper(f"{name}_f32", "float", f"float v{given}", real, LANES, template=template, needs=needs)


def helpers() -> Iterator[Helper]:
    for bits, kind in KINDS.items():
        yield from _moves(bits, kind)
    yield from _lanes()
    yield from _swap()
    yield from _between()
    yield from _wider()
