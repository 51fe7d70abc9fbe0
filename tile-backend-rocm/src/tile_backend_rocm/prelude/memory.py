"""Helpers of memory: barriers and fences, atomics, and copies from global memory to the LDS that the threads wait for."""

from __future__ import annotations

from collections.abc import Iterator

from .device_function import Helper

BARRIER = "MI300 ISA, S_BARRIER; LLVM AMDGPU usage, memory model"
ATOMIC = "MI300 ISA, GLOBAL_ATOMIC, DS_ADD, DS_CMPST"
COPY = "MI200 and MI300 ISA, memory buffer load to LDS: the LDS address is that in M0 plus 4 times the lane"

SCOPE = "__ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT"
FETCHES = {  # operation -> what a word becomes
    "add": "(T)(a + v)",
    "max": "a < v ? v : a",
    "min": "v < a ? v : a",
    "or": "(T)(a | v)",
    "and": "(T)(a & v)",
    "xor": "(T)(a ^ v)",
}


def _order() -> Iterator[Helper]:
    yield Helper(
        "block_sync",
        "void",
        "",
        '__builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup"); __builtin_amdgcn_s_barrier(); '
        '__builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");',
        BARRIER,
        "machine::block_barrier();",
    )
    yield Helper(
        "fence_device",
        "void",
        "",
        '__builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent");',
        BARRIER,
        "machine::acquire_at(nullptr);",
    )
    yield Helper(
        "tile_trap",
        "void",
        "",
        "__builtin_trap();",
        "MI300 ISA, S_TRAP",
        'machine::report("crash", "the kernel executes a trap at {0}"); machine::stop();',
    )


def _atomics() -> Iterator[Helper]:
    device = (
        f"__hip_atomic_compare_exchange_strong(at, &expected, value, __ATOMIC_RELAXED, {SCOPE}); "
        "return expected;"
    )
    host = "return machine::change_word(at, [&](W a) { return a == expected ? value : a; });"
    yield Helper("atom_swap_if", "W", "W* at, W expected, W value", device, ATOMIC, host, template="class W")
    for op, new in FETCHES.items():
        device = f"return __hip_atomic_fetch_{op}(at, v, {SCOPE});"
        host = f"return machine::change_word(at, [&](T a) {{ return {new}; }});"
        yield Helper(f"atom_{op}", "T", "T* at, T v", device, ATOMIC, host, template="class T")


def _pairs() -> Iterator[Helper]:
    """Atomic additions of two neighbours of 16 bits."""
    isa = "MI300 ISA, GLOBAL_ATOMIC_PK_ADD_F16, GLOBAL_ATOMIC_PK_ADD_BF16"
    for short, vector, builtin in (("f16", "f16x2", "v2f16"), ("bf16", "i16x2", "v2bf16")):
        device = (
            f"__builtin_amdgcn_global_atomic_fadd_{builtin}((TILE_GLOBAL {vector}*)to, "
            f"*reinterpret_cast<const {vector}*>(values));"
        )
        host = f"hip::add_pair_{short}(to, hip::load<u32>(values));"
        yield Helper(f"atom_add_{short}x2", "void", "void* to, const void* values", device, isa, host)


def _copies() -> Iterator[Helper]:
    yield Helper(
        "shared_address",
        "u32",
        "const void* p",
        "return (u32)(u64)(TILE_SHARED const unsigned char*)p;",
        COPY,
        "return machine::shared_address(p);",
    )
    yield Helper(
        "zero_word",
        "const void*",
        "",
        "return zero_words;",
        "no instruction",
        "return hip::zero_words;",
        note="what lanes read that must deliver zeros",
    )
    set_m0 = r"s_mov_b32 m0, %0\n\ts_nop 0\n\t"
    base = '"s"(__builtin_amdgcn_readfirstlane(to))'
    for size, width in ((4, "dword"), (16, "dwordx4")):
        device = (
            f'asm volatile("{set_m0}global_load_lds_{width} %1, off" :: {base}, '
            '"v"((TILE_GLOBAL const void*)from) : "memory", "m0");'
        )
        yield Helper(
            f"lds_copy_{size}",
            "void",
            "u32 to, const void* from",
            device,
            COPY,
            f"hip::lds_copy(to, from, {size});",
            note="assembly: of a load to the LDS that the compiler knows it waits before each LDS read that might be of it",
        )
        yield Helper(
            f"lds_copy_{size}_if",
            "void",
            "u32 to, const void* from, u32 taken",
            f"lds_copy_{size}(to, taken ? from : zero_word());",
            COPY,
            f"hip::lds_copy(to, taken ? from : hip::zero_words, {size});",
            needs=(f"lds_copy_{size}", "zero_word"),
        )
    yield from _buffer_copies(set_m0, base)
    yield Helper(
        "copies_wait",
        "void",
        "",
        'asm volatile("s_waitcnt vmcnt(%0)" :: "n"(N) : "memory");',
        "MI300 ISA, S_WAITCNT: memory operations of a wave return in order",
        "hip::copies_wait(N);",
        template="int N",
        note="other loads in flight count, too, and only make it wait for more",
    )


def _buffer_copies(set_m0: str, base: str) -> Iterator[Helper]:
    """Where only buffer loads reach the LDS: 32-bit offsets from a place 2 GiB before what one lane reads."""
    place = (
        "const u64 at = (u64)from, low = at - 0x80000000ull; "
        "const int base0 = __builtin_amdgcn_readlane((int)(u32)low, one), "
        "base1 = __builtin_amdgcn_readlane((int)(low >> 32), one); "
        "const u64 far = at - ((u64)(u32)base1 << 32 | (u32)base0); "
        # buffer resource: base address of 48 bits, no stride, nearly 4 GiB, raw 32-bit data
        "const i32x4 rsrc = {base0, base1, -2, 0x00020000}; "
    )
    load = (
        f'asm volatile("{set_m0}buffer_load_dword %1, %2, 0 offen lds" :: {base}, "v"(offset), "s"(rsrc) '
        ': "memory", "m0");'
    )
    # the trap is within the assembly: a branch of its own would take the resource out of scalar registers
    trap = (
        r'asm volatile("s_cmp_eq_u64 %0, 0\n\ts_cbranch_scc1 .Lnear%=\n\ts_trap 2\n.Lnear%=:" '
        ':: "s"(__builtin_amdgcn_ballot_w64({}(far >> 32) != 0)) : "scc"); '
    )
    for suffix, check in (("", ""), ("_checked", trap)):
        yield Helper(
            f"lds_buffer_copy_4{suffix}",
            "void",
            "u32 to, const void* from",
            f"const int one = 0; {place}{check.format('')}const u32 offset = (u32)far; {load}",
            COPY,
            "hip::lds_copy(to, from, 4);",
        )
        yield Helper(
            f"lds_buffer_copy_4_if{suffix}",
            "void",
            "u32 to, const void* from, u32 taken",
            "const u64 takers = __builtin_amdgcn_ballot_w64(taken != 0); "
            f"const int one = takers ? __builtin_ctzll(takers) : 0; {place}{check.format('taken && ')}"
            f"const u32 offset = taken ? (u32)far : 0xffffffffu; {load}",
            COPY,
            "hip::lds_copy(to, taken ? from : hip::zero_words, 4);",
            note="what lies beyond the end of a buffer reads as zero",
        )


def helpers() -> Iterator[Helper]:
    yield from _order()
    yield from _atomics()
    yield from _pairs()
    yield from _copies()
