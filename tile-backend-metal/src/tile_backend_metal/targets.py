"""Facts of Apple's GPU families, each with the figures of the base chip of one generation."""

from __future__ import annotations

from dataclasses import dataclass

from tile_core.hardware import Atom, Engine, MemorySpace, Target, TargetInfo, Token

from . import atoms

KIB, GIB = 1024, 1024**3

TABLES = "Apple, Metal feature set tables"
MSL = "Apple, Metal Shading Language specification"

DTYPES = frozenset(
    {
        *("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"),
        *("float16", "float32"),
        *("float8_e4m3fn", "float8_e5m2"),  # stored; computed in float32
    }
)
WITH_BFLOAT = DTYPES | {"bfloat16"}  # MSL 3.1 and Apple family 9 and later, as in the atom table

# No unit of these GPUs works asynchronously to the threads that a kernel can name: one cooperative stream.
ENGINES = (
    Engine("alu", "synchronous"),
    Engine("sfu", "synchronous"),
    Engine("tensor", "interlock", "warp"),
    Engine("global", "interlock", "thread", shared=True),
    Engine("shared", "interlock", "thread", shared=True),
)
TOKENS = (Token("barrier"),)  # threadgroup_barrier


@dataclass(frozen=True, slots=True)
class Chip:
    """The chip that stands for a family: GPU cores, clock in Hz, bytes per second of memory, float32 operations per second."""

    name: str
    cores: int
    clock: float
    memory: int
    bandwidth: float
    float32: float


def _info(
    arch: str, chip: Chip, table: tuple[Atom, ...], dtypes: frozenset[str], *features: str
) -> TargetInfo:
    peaks = {"float32": chip.float32, "float16": chip.float32, "global": chip.bandwidth}
    if "bfloat16" in dtypes:
        peaks["bfloat16"] = chip.float32
    return TargetInfo(
        Target("metal", arch),
        (
            MemorySpace("global", chip.memory, 256, "grid"),
            MemorySpace("shared", 32 * KIB, 16, "block", banks=32),
            MemorySpace("register", 208 * KIB, 4, "block"),
        ),
        ENGINES,
        TOKENS,
        subgroup=32,
        max_threads=1024,
        dtypes=dtypes,
        atoms=table,
        peaks=peaks,
        cores=chip.cores,
        clock=chip.clock,
        registers=128,
        features=frozenset({"simdgroup_matrix", "simd_shuffle", *features}),
        sources=(
            TABLES,
            MSL,
            f"{chip.name}: Apple's figures for bandwidth, public measurements for the rest",
        ),
        estimated=("peaks", "clock", "registers", "spaces"),
    )


M1 = Chip("M1", 8, 1.278e9, 16 * GIB, 68.25e9, 2.6e12)
M2 = Chip("M2", 10, 1.398e9, 24 * GIB, 100e9, 3.6e12)
M4 = Chip("M4", 10, 1.58e9, 32 * GIB, 120e9, 4.0e12)
M5 = Chip("M5", 10, 1.62e9, 32 * GIB, 153e9, 4.2e12)

# The M5's matrix units in the GPU cores are reached by Metal 4 tensors, which the atom table does not hold.
TARGETS = (
    _info("apple9", M4, (*atoms.ATOMS, *atoms.BFLOAT16), WITH_BFLOAT, "bfloat", "dynamic_caching"),
    _info(
        "apple10", M5, (*atoms.ATOMS, *atoms.BFLOAT16), WITH_BFLOAT, "bfloat", "dynamic_caching", "tensor_ops"
    ),
    _info("apple8", M2, atoms.ATOMS, DTYPES),
    _info("apple7", M1, atoms.ATOMS, DTYPES),
)


def family(arch: str) -> int:
    """The number of a family, such as 9 of ``apple9``; 0 for no architecture."""
    return int(arch.removeprefix("apple") or 0)
