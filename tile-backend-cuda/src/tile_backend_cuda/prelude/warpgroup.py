"""Helpers of wgmma: one for every type, N and place of A, made when asked for; fences, groups, descriptors, registers.

Traps that the design avoids (ptxas then runs every wgmma to its end before the next, silently but for C7515):

- accumulators set to zero by plain assignments. Use ``scale_d = 0`` on the first instruction, or ``zero_registers``;
- results used before the compiler knows that the wait orders them. Call ``hold_registers`` after ``wgmma_wait``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .device_function import Helper
from .matrix import BITS, host_type
from .spell import asm, effect, elements, predicated, registers

ISA = "Asynchronous Warpgroup Level Matrix Instructions: "

# operand types and the accumulators they allow
INPUTS: dict[tuple[str, str], tuple[str, ...]] = {
    ("f16", "f16"): ("f32", "f16"),
    ("bf16", "bf16"): ("f32",),
    ("tf32", "tf32"): ("f32",),
    **{(a, b): ("f32", "f16") for a in ("e4m3", "e5m2") for b in ("e4m3", "e5m2")},
    **{(a, b): ("s32",) for a in ("s8", "u8") for b in ("s8", "u8")},
}
NAME = re.compile(
    r"^wgmma_m64n(?P<n>\d+)k(?P<k>\d+)_(?P<d>f32|f16|s32)_(?P<a>[a-z]+\d+(?:m\d)?)(?:_(?P<b>[a-z]+\d+(?:m\d)?))?"
    r"_(?P<place>ss|rs)(?P<at>_at)?(?P<bt>_bt)?$"
)


def name_of(
    n: int,
    d: str,
    a: str,
    b: str,
    *,
    rs: bool = False,
    a_transposed: bool = False,
    b_transposed: bool = False,
) -> str:
    """``wgmma_m64n128k16_f32_bf16_ss``; ``_at``, ``_bt``: that operand is stored along M or N instead of K."""
    types = a if a == b else f"{a}_{b}"
    tail = ("rs" if rs else "ss") + "_at" * a_transposed + "_bt" * b_transposed
    return f"wgmma_m64n{n}k{256 // BITS[a]}_{d}_{types}_{tail}"


def legal_n(a: str) -> range | tuple[int, ...]:
    """PTX ISA, "Matrix Shape": multiples of 8; of integers 8 and 24, and from 16 on multiples of 16."""
    return (8, 24, *range(16, 257, 16)) if a in ("s8", "u8") else range(8, 257, 8)


def names() -> Iterator[str]:
    """Every wgmma helper there is."""
    for (a, b), results in INPUTS.items():
        half = BITS[a] == 16
        for d in results:
            for n in sorted(legal_n(a)):
                for bt in (False, True) if half else (False,):
                    yield name_of(n, d, a, b, rs=True, b_transposed=bt)
                    for at in (False, True) if half else (False,):
                        yield name_of(n, d, a, b, a_transposed=at, b_transposed=bt)


def instruction(name: str) -> Helper | None:
    """The helper of this name, or None if there is no such instruction."""
    m = NAME.match(name)
    if m is None:
        return None
    n, a, d = int(m["n"]), m["a"], m["d"]
    b = m["b"] or a
    rs, at, bt = m["place"] == "rs", bool(m["at"]), bool(m["bt"])
    if d not in INPUTS.get((a, b), ()) or n not in legal_n(a) or int(m["k"]) != 256 // BITS[a]:
        return None
    if ((at or bt) and BITS[a] != 16) or (rs and at) or m["b"] == a:
        return None
    return _instruction(name, n, d, a, b, rs, at, bt)


def _instruction(name: str, n: int, d: str, a: str, b: str, rs: bool, at: bool, bt: bool) -> Helper:
    count = n // 4 if d == "f16" else n // 2
    kind, letter = {"f32": ("float", "f"), "s32": ("int", "r"), "f16": ("u32", "r")}[d]
    first_a = registers(4, count) if rs else f"%{count}"
    after = count + (4 if rs else 1)
    scales = "" if d == "s32" else ", 1, 1"
    majors = "" if BITS[a] != 16 else f", {int(bt)}" if rs else f", {int(at)}, {int(bt)}"
    shape = f"wgmma.mma_async.sync.aligned.m64n{n}k{256 // BITS[a]}.{d}.{a}.{b}"
    text = predicated(f"{shape} {registers(count)}, {first_a}, %{after}, p{scales}{majors};", after + 1)
    operands = elements("a", 4, "r") if rs else [("l", "a")]
    flags = f"{str(at).lower()}, {str(bt).lower()}"
    types = f"{host_type(d)}, {host_type(a)}, {host_type(b)}"
    return Helper(
        name,
        "wgmma",
        "void",
        f"{kind}* d, {'const u32* a' if rs else 'u64 a'}, u64 b, int scale_d",
        asm(text, elements("d", count, "+" + letter), [*operands, ("l", "b"), ("r", "scale_d")]),
        f"cuda::wgmma({n}, {256 // BITS[a]}, {types}, {flags}, d, {'a, 0' if rs else 'nullptr, a'}, b, scale_d);",
        ISA + "wgmma.mma_async",
        90,
        exact=True,
    )


def _order() -> Iterator[Helper]:
    for name, ptx, host, what in (
        ("wgmma_fence", "wgmma.fence.sync.aligned;", "cuda::wgmma_fence();", "wgmma.fence"),
        (
            "wgmma_commit",
            "wgmma.commit_group.sync.aligned;",
            "cuda::wgmma_commit();",
            "wgmma.commit_group",
        ),
    ):
        yield effect(name, "wgmma", "", ptx, host, ISA + what, since=90, exact=True)
    wait = asm("wgmma.wait_group.sync.aligned %0;", ins=[("n", "N")], memory=True)
    yield Helper(
        "wgmma_wait",
        "wgmma",
        "void",
        "",
        wait,
        "cuda::wgmma_wait(N);",
        ISA + "wgmma.wait_group",
        90,
        exact=True,
        template="int N",
    )


def _registers() -> Iterator[Helper]:
    loop = '_Pragma("unroll") for (int i = 0; i < N; ++i) '
    for suffix, kind, letter in (("f32", "float", "f"), ("b32", "u32", "r"), ("s32", "int", "r")):
        hold = asm("", [("+" + letter, "x[i]")], memory=True)
        yield Helper(
            f"hold_registers_{suffix}",
            "wgmma",
            "void",
            f"{kind}* x",
            loop + hold,
            "(void)x;",
            ISA + "wgmma.fence",
            template="int N",
            note="no instruction: what reads these registers stays behind what waits for them",
        )
        zero = "mov.f32 %0, 0f00000000;" if letter == "f" else "mov.b32 %0, 0;"
        yield Helper(
            f"zero_registers_{suffix}",
            "wgmma",
            "void",
            f"{kind}* x",
            loop + asm(zero, [("=" + letter, "x[i]")]),
            "for (int i = 0; i < N; ++i) x[i] = 0;",
            ISA + "wgmma.mma_async",
            template="int N",
            note="by asm: plain zeros before a loop of wgmma make ptxas serialise it (C7515)",
        )


def _descriptors() -> Iterator[Helper]:
    fields = "(u64)((a & 0x3FFFF) >> 4) | (u64)(leading >> 4) << 16 | (u64)(stride >> 4) << 32"
    code = "(u64)(swizzle == 128 ? 1 : swizzle == 64 ? 2 : swizzle == 32 ? 3 : 0) << 62"
    yield Helper(
        "wgmma_descriptor",
        "wgmma",
        "u64",
        "u32 a, u32 leading, u32 stride, u32 swizzle",
        f"return {fields} | {code};",
        "return cuda::descriptor(a, leading, stride, swizzle);",
        ISA + "Shared Memory Matrix Layout",
        90,
        note="bytes; swizzle 0, 32, 64 or 128. K-major: stride = 8 rows further, leading unused when swizzled; "
        "MN-major: leading = one swizzle span further along M or N, stride = 8 further along K (plain: the other way round)",
    )
    yield Helper(
        "wgmma_descriptor_add",
        "wgmma",
        "u64",
        "u64 descriptor, u32 bytes",
        "return descriptor + (bytes >> 4);",
        "return descriptor + (bytes >> 4);",
        ISA + "Shared Memory Matrix Layout",
        90,
    )


def helpers() -> Iterator[Helper]:
    """All but the instructions themselves."""
    yield from _order()
    yield from _registers()
    yield from _descriptors()
