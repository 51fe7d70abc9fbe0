"""NVIDIA's matrix instructions as data: register layouts, widths and rates of mma.sync, wgmma and tcgen05, by architecture.

Digits are ``extent:stride``; thread digits count lanes (mma) or threads of a warpgroup (wgmma), register digits count
elements. Layouts: PTX ISA, "Warp-level matrix instructions" and "Asynchronous warpgroup-level matrix instructions".
Atoms of one tuple are in order of preference. ``requires``: ``wgmma`` for the warpgroup instructions, ``tcgen05``.
"""

from __future__ import annotations

from collections.abc import Callable

from tile_core.hardware import Atom
from tile_core.layout.digits import lane, reg, tile
from tile_core.layout.layout import Layout

MMA = "PTX ISA, mma.sync fragments"
WGMMA = "PTX ISA, wgmma.mma_async register fragments"
TCGEN05 = "PTX ISA, tcgen05.mma; data path of M = 128, read by tcgen05.ld.32x32b"

MMA_C = tile((16, 8), (reg(2, 2), lane(8, 4)), (lane(4), reg(2)))
M16N8K8_A = tile((16, 8), (reg(2, 2), lane(8, 4)), (lane(4), reg(2)))
M16N8K8_B = tile((8, 8), (lane(4), reg(2)), (lane(8, 4),))
M16N8K16_A = tile((16, 16), (reg(2, 2), lane(8, 4)), (reg(2, 4), lane(4), reg(2)))
M16N8K16_B = tile((16, 8), (reg(2, 2), lane(4), reg(2)), (lane(8, 4),))
M16N8K8_TF32_A = tile((16, 8), (reg(2), lane(8, 4)), (reg(2, 2), lane(4)))
M16N8K8_TF32_B = tile((8, 8), (reg(2), lane(4)), (lane(8, 4),))
M16N8K32_A = tile((16, 32), (reg(2, 4), lane(8, 4)), (reg(2, 8), lane(4), reg(4)))
M16N8K32_B = tile((32, 8), (reg(2, 4), lane(4), reg(4)), (lane(8, 4),))
M8N8K4_A = tile((8, 4), (lane(8, 4),), (lane(4),))
M8N8K4_B = tile((4, 8), (lane(4),), (lane(8, 4),))
M8N8K4_C = tile((8, 8), (lane(8, 4),), (lane(4), reg(2)))


def ldmatrix(matrices: int = 4, transposed: bool = False) -> Layout:
    """(matrix, row, column) of 8x8 matrices of 16 bits -> the register that receives it (stmatrix: gives it)."""
    rows, columns = (lane(8, 4),), (lane(4), reg(2))
    return tile((matrices, 8, 8), (reg(matrices, 2),), *((columns, rows) if transposed else (rows, columns)))


def ldmatrix_address(matrices: int = 4) -> Layout:
    """(matrix, row) -> the lane whose address operand points at that row of 16 bytes."""
    return tile((matrices, 8), (lane(matrices, 8),), (lane(8),))


def wgmma_c(n: int) -> Layout:
    """The accumulator of m64nN, N a multiple of 8."""
    return tile((64, n), (lane(4, 32), reg(2, 2), lane(8, 4)), (reg(n // 8, 4), lane(4), reg(2)))


def wgmma_a(bits: int = 16) -> Layout:
    """The A operand of wgmma in registers: 64 x (256 / bits)."""
    per = 32 // bits  # elements of one 32-bit register
    rows = (lane(4, 32), reg(2, per), lane(8, 4))
    return tile((64, 8 * per), rows, (reg(2, 2 * per), lane(4), reg(per)))


def _always(layout: Layout) -> Callable[[int], Layout]:
    def of(_width: int) -> Layout:
        return layout

    return of


SHORT = {
    "float16": "f16",
    "bfloat16": "bf16",
    "tfloat32": "tf32",
    "float8_e4m3fn": "e4m3",
    "float8_e5m2": "e5m2",
    "int8": "s8",
    "uint8": "u8",
    "float32": "f32",
    "float64": "f64",
    "int32": "s32",
}

Types = tuple[str, str, str]

HALF: tuple[Types, ...] = (
    ("float16", "float16", "float32"),
    ("bfloat16", "bfloat16", "float32"),
    ("float16", "float16", "float16"),
)
TF32: tuple[Types, ...] = (("tfloat32", "tfloat32", "float32"),)
FP8: tuple[Types, ...] = tuple(
    (a, b, "float32") for a in ("float8_e4m3fn", "float8_e5m2") for b in ("float8_e4m3fn", "float8_e5m2")
)
INT8: tuple[Types, ...] = tuple((a, b, "int32") for a in ("int8", "uint8") for b in ("int8", "uint8"))
FP64: tuple[Types, ...] = (("float64", "float64", "float64"),)


def _name(head: str, types: Types) -> str:
    a, b, c = (SHORT[t] for t in types)
    return f"{head}.{c}.{a}" if a == b else f"{head}.{c}.{a}.{b}"


def _mma(shape: tuple[int, int, int], types: Types, a: Layout, b: Layout, c: Layout, rate: int) -> Atom:
    head = "mma.m{}n{}k{}".format(*shape)
    return Atom(_name(head, types), shape, 32, types, a, b, _always(c), rate, source=MMA)


def mma_sync(half: int, *, fp8: bool = False, fp64: int = 0) -> tuple[Atom, ...]:
    """Warp-level instructions of an architecture that does ``half`` operations of 16 bits per clock and SM.

    The other types follow: half the rate for tf32, twice for 8 bits. ``fp64``: rate of double precision, 0 for none.
    """
    out = [_mma((16, 8, 16), t, M16N8K16_A, M16N8K16_B, MMA_C, half) for t in HALF]
    out += [_mma((16, 8, 8), t, M16N8K8_TF32_A, M16N8K8_TF32_B, MMA_C, half // 2) for t in TF32]
    for t in (*INT8, *(FP8 if fp8 else ())):
        out.append(_mma((16, 8, 32), t, M16N8K32_A, M16N8K32_B, MMA_C, 2 * half))
    if fp64:
        out += [_mma((8, 8, 4), t, M8N8K4_A, M8N8K4_B, M8N8K4_C, fp64) for t in FP64]
    return tuple(out)


def wgmma(half: int) -> tuple[Atom, ...]:
    """Warpgroup-level instructions; ``half`` as for ``mma_sync``.

    B always comes from shared memory, A from there or from registers. Only 16-bit operands may be stored along M or N
    (PTX ISA: imm-trans-a, imm-trans-b exist for .f16 and .bf16 alone). Integer widths go in steps of 16 (above 32 the
    list of N for .s8 and .u8 has no odd multiples of 8).
    """
    rows = (
        *((t, 16, half, 16, 8) for t in HALF),
        *((t, 8, half // 2, 32, 8) for t in TF32),
        *((t, 32, 2 * half, 8, 8) for t in FP8),
        *((t, 32, 2 * half, 8, 16) for t in INT8),
    )
    return tuple(
        Atom(
            _name(f"wgmma.m64k{k}", types),
            (64, 256, k),
            128,
            types,
            wgmma_a(bits),
            None,
            wgmma_c,
            rate,
            step_n=step,
            shared_a=True,
            k_major=bits != 16,
            requires=("wgmma",),
            source=WGMMA,
        )
        for types, k, rate, bits, step in rows
    )


def row_of_thread(n: int) -> Layout:
    """128 rows, one for each thread of a warpgroup: a warp reaches 32 lanes of tensor memory, a lane holds a row of the sums."""
    return tile((128, n), (lane(128),), (reg(n),))


def tcgen05(half: int, integers: bool) -> tuple[Atom, ...]:
    """Instructions of one block on tensor memory; ``half`` as for ``mma_sync``. Both operands come from shared memory.

    Widths of M = 128 are multiples of 16 up to 256 (PTX ISA, "tcgen05.mma: shapes"). Sums of 32 bits alone: a register and a
    column of tensor memory then hold the same. As for wgmma, only 16-bit operands may be stored along M or N here.
    """
    rows = (
        *((t, 16, half, 16) for t in HALF if t[2] == "float32"),
        *((t, 8, half // 2, 32) for t in TF32),
        *((t, 32, 2 * half, 8) for t in (*FP8, *(INT8 if integers else ()))),
    )
    return tuple(
        Atom(
            _name(f"tcgen05.m128k{k}", types),
            (128, 256, k),
            128,
            types,
            None,
            None,
            row_of_thread,
            rate,
            step_n=16,
            shared_a=True,
            k_major=bits != 16,
            sums="tensor",
            requires=("tcgen05",),
            source=TCGEN05,
        )
        for types, k, rate, bits in rows
    )


# rates: dense peak of the data sheet / (SMs x boost clock); sm_89 and sm_120 of the workstation cards
SM_75 = tuple(_mma((16, 8, 8), t, M16N8K8_A, M16N8K8_B, MMA_C, 1024) for t in HALF if t[0] == "float16")
SM_80 = mma_sync(2048, fp64=128)
SM_86 = mma_sync(1024)
SM_89 = mma_sync(1024, fp8=True)
# warp-level instructions reach about half of what wgmma does on Hopper
SM_90 = mma_sync(2048, fp8=True, fp64=256)
SM_90A = (*wgmma(4096), *SM_90)
SM_100A = (*tcgen05(8192, integers=True), *mma_sync(2048, fp8=True, fp64=128))
# integer and double precision units were given up for wider exponentials and narrow floats
SM_103A = (*tcgen05(8192, integers=False), *(a for a in mma_sync(2048, fp8=True) if "int" not in a.types[0]))
SM_120 = mma_sync(1024, fp8=True)
