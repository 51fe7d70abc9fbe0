"""Facts of AMD's architectures, each with the figures of one well-known chip of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tile_core.hardware import Atom, Engine, MemorySpace, Target, TargetInfo, Token

from . import atoms

KIB, GIB = 1024, 1024**3
TERA = 1e12

CDNA = "AMD Instinct MI200 / MI300 / CDNA4 instruction set architecture guides"
RDNA = "AMD RDNA3 / RDNA4 instruction set architecture guides"

BASE = frozenset(
    {
        *("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"),
        *("float16", "bfloat16", "float32", "float64"),
    }
)
FNUZ_TYPES = BASE | {
    "tfloat32",
    "float8_e4m3fnuz",
    "float8_e5m2fnuz",
}  # CDNA3's 8-bit floats are the FNUZ kinds
OCP_TYPES = BASE | {"float8_e4m3fn", "float8_e5m2"}
OCP_SMALL_TYPES = OCP_TYPES | {"float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn", "float8_e8m0fnu"}

ALU = Engine("alu", "synchronous")
SFU = Engine("sfu", "synchronous")
MEMORY = Engine("global", "interlock", "thread", shared=True)
BANKS = Engine("shared", "interlock", "thread", shared=True)
MATRIX = Engine("tensor", "interlock", "warp")  # hazards are seen to by the assembler
TO_LDS = Engine("copy", "group", "warp")  # ISA guides, buffer_load ... lds: in order, counted by vmcnt

CDNA_ENGINES = (TO_LDS, MATRIX, ALU, SFU, MEMORY, BANKS)
RDNA_ENGINES = (MATRIX, ALU, SFU, MEMORY, BANKS)

BARRIER = Token("barrier")  # s_barrier
COUNTER = Token("commit_group", limit=63)  # s_waitcnt vmcnt(n) has six bits on gfx9

CDNA_TOKENS = (COUNTER, BARRIER)
RDNA_TOKENS = (BARRIER,)


# Reads of 16 bytes: a pass serves lanes 0 to 3 with 20 to 23, 4 to 7 with 16 to 19, 8 to 11 with 28 to 31, 12 to 15 with 24 to 27,
# and so on from 32: ROCm blogs, "Avoiding LDS bank conflicts on AMD GPUs using CK-Tile". Writes take lanes in order.
CDNA_PASSES = ((16, (1, 2, 20, 4, 8, 32)),)


@dataclass(frozen=True, slots=True)
class Chip:
    """The chip that stands for an architecture; of the MI250X one of its two devices."""

    name: str
    cores: int
    clock: float
    memory: int
    bandwidth: float
    sheet: str


def _info(
    arch: str,
    chip: Chip,
    lds: int,
    peaks: Mapping[str, float],
    *,
    dtypes: frozenset[str],
    wave: int,
    file: int,
    registers: int,
    source: str,
    table: tuple[Atom, ...] = (),
    features: tuple[str, ...] = (),
    banks: int = 32,
    estimated: tuple[str, ...] = (),
) -> TargetInfo:
    """``lds`` and ``file`` (vector registers of a compute unit) in KiB, ``peaks`` in tera-operations per second."""
    cdna = wave == 64
    spaces = (
        MemorySpace("global", chip.memory, 256, "grid"),
        MemorySpace("shared", lds * KIB, 16, "block", banks=banks, passes=CDNA_PASSES if cdna else ()),
        MemorySpace("register", file * KIB, 4, "block"),
    )
    return TargetInfo(
        Target("rocm", arch),
        spaces,
        CDNA_ENGINES if cdna else RDNA_ENGINES,
        CDNA_TOKENS if cdna else RDNA_TOKENS,
        subgroup=wave,
        max_threads=1024,
        dtypes=dtypes,
        atoms=table,
        peaks={name: tera * TERA for name, tera in peaks.items()} | {"global": chip.bandwidth},
        cores=chip.cores,
        clock=chip.clock,
        registers=registers,
        features=frozenset(features),
        sources=(source, f"{chip.name}: {chip.sheet}"),
        estimated=estimated,
    )


MI300X = Chip("MI300X", 304, 2.1e9, 192 * GIB, 5.3e12, "AMD Instinct MI300X data sheet")
MI250X = Chip("MI250X", 110, 1.7e9, 64 * GIB, 1.6384e12, "AMD Instinct MI250X data sheet, half of it")
MI355X = Chip("MI355X", 256, 2.4e9, 288 * GIB, 8e12, "AMD Instinct MI355X data sheet")
RX7900 = Chip("Radeon RX 7900 XTX", 96, 2.5e9, 24 * GIB, 0.96e12, "AMD Radeon RX 7900 XTX specifications")
RX9070 = Chip("Radeon RX 9070 XT", 64, 2.97e9, 16 * GIB, 0.6446e12, "AMD Radeon RX 9070 XT specifications")

# A lane of CDNA2 and later has 512 vector registers, 256 of them only through accumulator instructions or as spill space.
TARGETS = (
    _info(
        "gfx942",
        MI300X,
        64,
        {
            "float16": 1307.4,
            "bfloat16": 1307.4,
            "tfloat32": 653.7,
            "float8_e4m3fnuz": 2614.9,
            "float8_e5m2fnuz": 2614.9,
            "int8": 2614.9,
            "float32": 163.4,
            "float64": 163.4,
        },
        dtypes=FNUZ_TYPES,
        wave=64,
        file=512,
        registers=512,
        source=CDNA,
        table=atoms.GFX942,
        features=("mfma", "buffer_load_lds", "global_load_lds", "dpp", "dot4", "pk_add_f16", "pk_add_bf16"),
    ),
    _info(
        "gfx950",
        MI355X,
        160,
        {
            "float16": 2516.6,
            "bfloat16": 2516.6,
            "float8_e4m3fn": 5033.2,
            "float8_e5m2": 5033.2,
            "int8": 5033.2,
            "float6_e2m3fn": 10066.3,
            "float6_e3m2fn": 10066.3,
            "float4_e2m1fn": 10066.3,
            "float32": 157.3,
            "float64": 78.6,
        },
        dtypes=OCP_SMALL_TYPES,
        wave=64,
        file=512,
        registers=512,
        source=CDNA,
        table=atoms.GFX950,
        features=(
            *("mfma", "buffer_load_lds", "global_load_lds", "global_load_lds_16", "ds_read_tr", "dpp"),
            *("dot4", "pk_add_f16", "pk_add_bf16"),
        ),
        banks=64,
        estimated=("spaces",),
    ),
    _info(
        "gfx90a",
        MI250X,
        64,
        {
            "float16": 191.5,
            "bfloat16": 191.5,
            "int8": 191.5,
            "float32": 47.9,
            "float64": 47.9,
        },
        dtypes=BASE,
        wave=64,
        file=512,
        registers=512,
        source=CDNA,
        table=atoms.GFX90A,
        features=("mfma", "buffer_load_lds", "dpp", "dot4", "pk_add_f16"),
    ),
    _info(
        "gfx1100",
        RX7900,
        64,
        {"float16": 122.8, "bfloat16": 122.8, "int8": 122.8, "float32": 61.4, "float64": 1.92},
        dtypes=BASE,
        wave=32,
        file=384,
        registers=256,
        source=RDNA,
        table=atoms.GFX1100,
        features=("wmma", "dpp", "dot4"),
        estimated=("peaks", "clock"),
    ),
    _info(
        "gfx1201",
        RX9070,
        64,
        {
            "float16": 194.6,
            "bfloat16": 194.6,
            "float8_e4m3fn": 389.2,
            "float8_e5m2": 389.2,
            "int8": 389.2,
            "float32": 48.7,
            "float64": 0.76,
        },
        dtypes=OCP_TYPES,
        wave=32,
        file=384,
        registers=256,
        source=RDNA,
        table=atoms.GFX1201,
        features=("wmma", "dpp", "dot4", "pk_add_f16", "pk_add_bf16"),
        estimated=("peaks", "clock"),
    ),
)
