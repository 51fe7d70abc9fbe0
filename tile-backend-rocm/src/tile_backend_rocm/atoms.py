"""AMD's matrix instructions as atoms: register layouts, shapes and rates, by architecture.

Layouts: AMD Instinct MI200, MI300 and CDNA4 instruction set architecture, "Matrix arithmetic instructions"; RDNA3 and RDNA4
instruction set architecture, "Wave matrix multiply accumulate". They agree with AMD's matrix instruction calculator. With p
elements of k per lane the shapes of MFMA are 32x32x(2p) and 16x16x(4p), and a wave has 64 lanes; WMMA is 16x16x16, and a wave
has 32.

k is summed over, so its order is free as long as a and b agree: an atom may be several instructions, of which each takes some of
the neighbours along k that a lane holds. A lane then reads 16 bytes at once. Atoms of one tuple are in order of preference.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tile_core.dtypes import dtype
from tile_core.hardware import Atom
from tile_core.layout.digits import lane, reg, tile
from tile_core.layout.layout import Layout

MFMA_SOURCE = "AMD Instinct ISA guides, MFMA"
WMMA_SOURCE = "AMD RDNA ISA guides, WMMA"
READ_BYTES = 16  # of the widest read from the LDS

MFMA_32_C = tile((32, 32), (reg(4, 4), lane(2, 32), reg(4)), (lane(32),))
MFMA_16_C = tile((16, 16), (lane(4, 16), reg(4)), (lane(16),))
# both halves of a wave hold the same
WMMA_3_A = Layout((16, 16), (lane(16), reg(16)), (lane(2, 16),))
WMMA_3_B = Layout((16, 16), (reg(16), lane(16)), (lane(2, 16),))
WMMA_3 = ((WMMA_3_A, WMMA_3_B), tile((16, 16), (reg(8), lane(2, 16)), (lane(16),)))
WMMA_4_C = tile((16, 16), (lane(2, 16), reg(8)), (lane(16),))


def mfma_a(side: int, per: int) -> Layout:
    """The A operand of a ``side`` x ``side`` instruction with ``per`` consecutive elements of k in each lane."""
    along = 64 // side
    return tile((side, along * per), (lane(side),), (lane(along, side), reg(per)))


def mfma_b(side: int, per: int) -> Layout:
    """The B operand: A transposed."""
    along = 64 // side
    return tile((along * per, side), (lane(along, side), reg(per)), (lane(side),))


def wmma_4(per: int) -> tuple[Layout, Layout]:
    """The operands of RDNA4's with ``per`` consecutive elements of k in each lane."""
    a = tile((16, 2 * per), (lane(16),), (lane(2, 16), reg(per)))
    return a, tile((2 * per, 16), (lane(2, 16), reg(per)), (lane(16),))


def _always(layout: Layout) -> Callable[[int], Layout]:
    def of(_width: int) -> Layout:
        return layout

    return of


# the FNUZ kinds of CDNA3 have names of their own: other numbers have these bits
SHORT = {
    "float16": "f16",
    "bfloat16": "bf16",
    "tfloat32": "xf32",
    "float32": "f32",
    "float8_e4m3fnuz": "fp8z",
    "float8_e5m2fnuz": "bf8z",
    "float8_e4m3fn": "fp8",
    "float8_e5m2": "bf8",
    "int8": "i8",
    "int32": "i32",
}


def _kinds(a: str, b: str) -> str:
    return SHORT[a] if a == b else f"{SHORT[a]}_{SHORT[b]}"


def mfma(a: str, b: str, c: str, per: int, rate: int) -> tuple[Atom, ...]:
    """Both shapes of one instruction: types of a, b and c, elements of k per lane, operations per clock and CU.

    First as many instructions at once as a lane reads operands of by one vector, then one alone.
    """
    several = READ_BYTES * 8 // dtype(a).bits // per
    out: list[Atom] = []
    for times in (several, 1) if several > 1 else (1,):
        for side in (32, 16):
            name = f"mfma.{side}x{side}x{64 // side * per}.{SHORT[c]}.{_kinds(a, b)}"
            name += f".x{times}" if times > 1 else ""
            operands = mfma_a(side, per * times), mfma_b(side, per * times)
            shape = (side, side, 64 // side * per * times)
            sums = _always(MFMA_32_C if side == 32 else MFMA_16_C)
            out.append(Atom(name, shape, 64, (a, b, c), *operands, sums, rate, source=MFMA_SOURCE))
    return tuple(out)


def wmma(generation: int, a: str, b: str, c: str, rate: int) -> tuple[Atom, ...]:
    """WMMA of RDNA3 or RDNA4. First as many instructions at once as a lane reads operands of by one vector, then one alone."""
    several = READ_BYTES * 8 // dtype(a).bits // 8 if generation == 4 else 1
    out: list[Atom] = []
    for times in (several, 1) if several > 1 else (1,):
        name = f"wmma{generation}.16x16x16.{SHORT[c]}.{_kinds(a, b)}" + (f".x{times}" if times > 1 else "")
        operands, sums = WMMA_3 if generation == 3 else (wmma_4(8 * times), WMMA_4_C)
        shape = (16, 16, 16 * times)
        out.append(Atom(name, shape, 32, (a, b, c), *operands, _always(sums), rate, source=WMMA_SOURCE))
    return tuple(out)


def _halves(per: int, rate: int) -> tuple[Atom, ...]:
    return tuple(x for t in ("float16", "bfloat16") for x in mfma(t, t, "float32", per, rate))


def _narrow(found: tuple[Atom, ...]) -> tuple[Atom, ...]:
    """The same with sums of 16 bits, which no instruction has: registers are converted before and after, at half the rate."""
    return tuple(
        replace(a, name=a.name.replace(".f32.", ".f16."), types=(*a.types[:2], "float16"), rate=a.rate // 2)
        for a in found
        if a.types == ("float16", "float16", "float32")
    )


def _eights(suffix: str) -> tuple[str, str]:
    return f"float8_e4m3{suffix or 'fn'}", f"float8_e5m2{suffix}"


def _mfma_eights(suffix: str, rate: int) -> tuple[Atom, ...]:
    kinds = _eights(suffix)
    return tuple(x for a in kinds for b in kinds for x in mfma(a, b, "float32", 8, rate))


# rates: dense peak of the data sheet / (CUs x peak clock)
_GFX90A = (
    *_halves(4, 1024),
    *mfma("int8", "int8", "int32", 4, 1024),
    *mfma("float32", "float32", "float32", 1, 256),
)
_GFX942 = (
    *_halves(4, 2048),
    *_mfma_eights("fnuz", 4096),
    *mfma("int8", "int8", "int32", 8, 4096),
    *mfma("float32", "float32", "float32", 1, 256),
    *mfma("tfloat32", "tfloat32", "float32", 2, 1024),
)
_GFX950 = (
    *_halves(8, 4096),
    *_halves(4, 2048),
    *_mfma_eights("", 4096),
    *mfma("int8", "int8", "int32", 16, 4096),
    *mfma("int8", "int8", "int32", 8, 4096),
    *mfma("float32", "float32", "float32", 1, 256),
)
_GFX1100 = (
    *(x for t in ("float16", "bfloat16") for x in wmma(3, t, t, "float32", 512)),
    *wmma(3, "int8", "int8", "int32", 512),
)
_GFX1201 = (
    *(x for t in ("float16", "bfloat16") for x in wmma(4, t, t, "float32", 1024)),
    *(x for a in _eights("") for b in _eights("") for x in wmma(4, a, b, "float32", 2048)),
    *wmma(4, "int8", "int8", "int32", 2048),
)
GFX90A, GFX942, GFX950, GFX1100, GFX1201 = (
    (*found, *_narrow(found)) for found in (_GFX90A, _GFX942, _GFX950, _GFX1100, _GFX1201)
)
ALL = tuple({a.name: a for table in (GFX90A, GFX942, GFX950, GFX1100, GFX1201) for a in table}.values())
