"""Helpers that move several elements at once, between any two of registers, shared and global memory; and wide shuffles.

Plain C++ on generic pointers, not asm: the compiler sees from where a pointer comes which instruction it needs, keeps arrays
in registers, and may still move loads ahead of stores.
"""

from __future__ import annotations

from collections.abc import Iterator

from .device_function import Helper

ISA = "Data Movement and Conversion Instructions: ld"
KINDS = {16: "u16", 32: "u32", 64: "u32x2", 128: "u32x4"}


def _moves(bits: int, kind: str) -> Iterator[Helper]:
    parameters = "void* to, const void* from"
    device = f"*reinterpret_cast<{kind}*>(to) = *reinterpret_cast<const {kind}*>(from);"
    host = f"cuda::store(to, cuda::load<{kind}>(from));"
    yield Helper(f"move_b{bits}", "moves", "void", parameters, device, host, ISA)
    parameters += ", bool inside"
    device = f"{kind} v = {{}}; if (inside) v = *reinterpret_cast<const {kind}*>(from); *reinterpret_cast<{kind}*>(to) = v;"
    host = f"{kind} v = {{}}; if (inside) v = cuda::load<{kind}>(from); cuda::store(to, v);"
    yield Helper(f"fetch_b{bits}", "moves", "void", parameters, device, host, ISA)


def _shuffles() -> Iterator[Helper]:
    for name in ("xor", "up", "idx"):
        one = f"shfl_{name}_b32"
        body = f"return (u64){one}((u32)(v >> 32), n) << 32 | {one}((u32)v, n);"
        isa = "Data Movement and Conversion Instructions: shfl.sync"
        yield Helper(f"shfl_{name}_b64", "moves", "u64", "u64 v, int n", body, body, isa, needs=(one,))


def helpers() -> Iterator[Helper]:
    for bits, kind in KINDS.items():
        yield from _moves(bits, kind)
    yield from _shuffles()
