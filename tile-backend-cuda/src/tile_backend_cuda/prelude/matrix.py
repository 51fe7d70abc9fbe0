"""Helpers of a warp's matrix instructions: ldmatrix, stmatrix, movmatrix, and mma.sync for the rows of ``atoms`` and more.

Fragments are pointers to the first of a thread's registers: after inlining and unrolling they are registers.
"""

from __future__ import annotations

from collections.abc import Iterator

from .. import atoms
from .device_function import Helper
from .spell import asm, elements, pure, registers

MMA = "Warp Level Matrix Instructions: mma"
TYPE = {
    "f16": "F16",
    "bf16": "BF16",
    "tf32": "TF32",
    "e4m3": "E4M3_",
    "e5m2": "E5M2_",
    "s8": "S8",
    "u8": "U8",
    "s4": "S4",
    "u4": "U4",
    "f32": "F32",
    "s32": "S32",
    "f64": "F64",
}
BITS = {
    "f16": 16,
    "bf16": 16,
    "tf32": 32,
    "e4m3": 8,
    "e5m2": 8,
    "s8": 8,
    "u8": 8,
    "s4": 4,
    "u4": 4,
    "f32": 32,
    "s32": 32,
    "f64": 64,
}
# of a fragment's registers: C++ type and constraint
REGISTER = {"f32": ("float", "f"), "s32": ("int", "r"), "f64": ("double", "d")}


def host_type(name: str) -> str:
    return f"cuda::{TYPE[name]}"


def register_of(name: str) -> tuple[str, str]:
    return REGISTER.get(name, ("u32", "r"))


def count_of(name: str, elements_: int) -> int:
    """Registers of a thread that hold this many elements of the whole warp."""
    return elements_ // 32 * BITS[name] // max(32, BITS[name])


def _mma(shape: tuple[int, int, int], d: str, a: str, b: str, since: int) -> Helper:
    m, n, k = shape
    counts = [count_of(d, m * n), count_of(a, m * k), count_of(b, k * n)]
    (td, ld), (ta, la), (tb, lb) = register_of(d), register_of(a), register_of(b)
    # %: d, then a, b, c
    first = [0, counts[0], counts[0] + counts[1], counts[0] + counts[1] + counts[2]]
    lists = [registers(c, f) for c, f in zip([counts[0], counts[1], counts[2], counts[0]], first)]
    text = f"mma.sync.aligned.m{m}n{n}k{k}.row.col.{d}.{a}.{b}.{d} {', '.join(lists)};"
    ins = [
        *elements("a", counts[1], la),
        *elements("b", counts[2], lb),
        *elements("c", counts[0], ld),
    ]
    types = d + ("." + a if a == b else f".{a}.{b}")
    return Helper(
        f"mma_m{m}n{n}k{k}_{types.replace('.', '_')}",
        "mma",
        "void",
        f"{td}* d, const {ta}* a, const {tb}* b, const {td}* c",
        asm(text, elements("d", counts[0], "=" + ld), ins),
        f"cuda::mma({m}, {n}, {k}, {host_type(d)}, {host_type(a)}, {host_type(b)}, d, a, b, c);",
        MMA,
        since,
    )


# what atoms.py does not list: sm_75 and the narrower or older shapes
MORE = (
    ((16, 8, 8), "f32", "f16", "f16", 75),
    ((16, 8, 8), "f16", "f16", "f16", 75),
    ((16, 8, 8), "f32", "bf16", "bf16", 80),
    ((16, 8, 4), "f32", "tf32", "tf32", 80),
    ((16, 8, 16), "s32", "s8", "s8", 80),
    ((16, 8, 16), "s32", "u8", "u8", 80),
    ((16, 8, 32), "s32", "s4", "s4", 80),
    ((16, 8, 64), "s32", "s4", "s4", 80),
    ((16, 8, 64), "s32", "u4", "u4", 80),
    ((16, 8, 64), "s32", "u4", "s4", 80),
)
FIRST = {"e4m3": 89, "e5m2": 89}


def _mma_rows() -> Iterator[Helper]:
    seen: set[str] = set()
    for atom in (*atoms.SM_90, *atoms.SM_75):
        a, b, d = (atoms.SHORT[t] for t in atom.types)
        since = 75 if atom in atoms.SM_75 else FIRST.get(a, 80)
        helper = _mma(atom.shape, d, a, b, since)
        if helper.name not in seen:
            seen.add(helper.name)
            yield helper
    for shape, d, a, b, since in MORE:
        helper = _mma(shape, d, a, b, since)
        if helper.name not in seen:
            seen.add(helper.name)
            yield helper


def atom_helper(name: str) -> str:
    """The helper of an atom of ``atoms``: ``mma.m16n8k16.f32.bf16`` -> ``mma_m16n8k16_f32_bf16``."""
    return name.replace(".", "_")


def _moves() -> Iterator[Helper]:
    for count in (1, 2, 4):
        for transposed in (False, True):
            trans, suffix = (".trans", "_trans") if transposed else ("", "")
            flag = "true" if transposed else "false"
            shape = f"sync.aligned.m8n8.x{count}{trans}.shared.b16"
            load = asm(
                f"ldmatrix.{shape} {registers(count)}, [%{count}];",
                elements("d", count, "=r"),
                [("r", "a")],
                memory=True,
            )
            yield Helper(
                f"ldmatrix_x{count}{suffix}",
                "matrix_move",
                "void",
                "u32* d, u32 a",
                load,
                f"cuda::ldmatrix({count}, {flag}, d, a);",
                "Warp Level Matrix Instructions: ldmatrix",
            )
            store = asm(
                f"stmatrix.{shape} [%0], {registers(count, 1)};",
                ins=[("r", "a"), *elements("s", count, "r")],
                memory=True,
            )
            yield Helper(
                f"stmatrix_x{count}{suffix}",
                "matrix_move",
                "void",
                "u32 a, const u32* s",
                store,
                f"cuda::stmatrix({count}, {flag}, a, s);",
                "Warp Level Matrix Instructions: stmatrix",
                90,
            )
    yield pure(
        "movmatrix_trans",
        "matrix_move",
        "u32",
        "u32 x",
        "movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;",
        "cuda::movmatrix(x)",
        "Warp Level Matrix Instructions: movmatrix",
    )


def helpers() -> Iterator[Helper]:
    yield from _moves()
    yield from _mma_rows()
