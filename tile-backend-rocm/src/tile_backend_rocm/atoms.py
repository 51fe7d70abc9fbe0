"""AMD's MFMA instructions as data: register layouts, shapes and rates, by architecture. A wave has 64 lanes.

Layouts: AMD Instinct MI200 and MI300 instruction set architecture, "Matrix arithmetic instructions"; they agree with
AMD's matrix instruction calculator. With p elements of k per lane the shapes are 32x32x(2p) and 16x16x(4p).
Atoms of one tuple are in order of preference.
"""

from __future__ import annotations

from collections.abc import Callable

from tile_core.hardware import Atom
from tile_core.layout.digits import lane, reg, tile
from tile_core.layout.layout import Layout

SOURCE = "AMD Instinct ISA guides, MFMA"

MFMA_32_C = tile((32, 32), (reg(4, 4), lane(2, 32), reg(4)), (lane(32),))
MFMA_16_C = tile((16, 16), (lane(4, 16), reg(4)), (lane(16),))


def mfma_a(side: int, per: int) -> Layout:
    """The A operand of a ``side`` x ``side`` instruction with ``per`` consecutive elements of k in each lane."""
    along = 64 // side
    return tile((side, along * per), (lane(side),), (lane(along, side), reg(per)))


def mfma_b(side: int, per: int) -> Layout:
    """The B operand: A transposed."""
    along = 64 // side
    return tile((along * per, side), (lane(along, side), reg(per)), (lane(side),))


def _accumulator(side: int) -> Callable[[int], Layout]:
    def of(_width: int) -> Layout:
        return MFMA_32_C if side == 32 else MFMA_16_C

    return of


SHORT = {
    "float16": "f16",
    "bfloat16": "bf16",
    "tfloat32": "xf32",
    "float32": "f32",
    "float8_e4m3fnuz": "fp8",
    "float8_e5m2fnuz": "bf8",
    "float8_e4m3fn": "fp8",
    "float8_e5m2": "bf8",
    "int8": "i8",
    "int32": "i32",
}


def mfma(a: str, b: str, c: str, per: int, rate: int) -> tuple[Atom, ...]:
    """Both shapes of one instruction: types of a, b and c, elements of k per lane, operations per clock and CU."""
    out: list[Atom] = []
    for side in (32, 16):
        k = 64 // side * per
        kinds = SHORT[a] if a == b else f"{SHORT[a]}_{SHORT[b]}"
        name = f"mfma.{side}x{side}x{k}.{SHORT[c]}.{kinds}"
        operands = mfma_a(side, per), mfma_b(side, per)
        out.append(
            Atom(name, (side, side, k), 64, (a, b, c), *operands, _accumulator(side), rate, source=SOURCE)
        )
    return tuple(out)


def _halves(per: int, rate: int) -> tuple[Atom, ...]:
    return tuple(x for t in ("float16", "bfloat16") for x in mfma(t, t, "float32", per, rate))


def _eights(suffix: str, rate: int) -> tuple[Atom, ...]:
    kinds = (f"float8_e4m3{suffix or 'fn'}", f"float8_e5m2{suffix}")
    return tuple(x for a in kinds for b in kinds for x in mfma(a, b, "float32", 8, rate))


# rates: dense peak of the data sheet / (CUs x peak clock)
GFX90A = (
    *_halves(4, 1024),
    *mfma("int8", "int8", "int32", 4, 1024),
    *mfma("float32", "float32", "float32", 1, 256),
)
GFX942 = (
    *_halves(4, 2048),
    *_eights("fnuz", 4096),
    *mfma("int8", "int8", "int32", 8, 4096),
    *mfma("float32", "float32", "float32", 1, 256),
    *mfma("tfloat32", "tfloat32", "float32", 2, 1024),
)
GFX950 = (
    *_halves(8, 4096),
    *_halves(4, 2048),
    *_eights("", 4096),
    *mfma("int8", "int8", "int32", 8, 4096),
    *mfma("float32", "float32", "float32", 1, 256),
)
