"""Facts of Huawei's Ascend AI cores: a cube core and two vector cores, each with its own memories and pipes."""

from __future__ import annotations

from tile_core.hardware import Engine, MemorySpace, Target, TargetInfo, Token

from . import tiles

KIB, GIB = 1024, 1024**3

# Memory sizes, alignments and core counts: the target table inside Huawei's bishengir-compile 1.2.0 (in bits there).
COMPILER = "target table of bishengir-compile 1.2.0"
SECONDARY = "clock, peak rates and HBM bandwidth: public secondary sources, not verified"

DTYPES = frozenset(
    {
        *("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64"),
        *("float16", "bfloat16", "float32"),
    }
)

# Every pipe is in order and has its own instruction queue; a flag is set by the pipe after the op.
PIPES = ("mte1", "mte2", "mte3", "cube", "vector", "fixpipe")
ENGINES = (
    *(Engine(pipe, "signal", pipe) for pipe in PIPES),
    Engine("global", "interlock", "block", shared=True),
)
# At most 8 event ids between two pipes of a core; flags between cores go through the FFTS unit.
TOKENS = (Token("flag", limit=8), Token("cross_flag", limit=16), Token("barrier"))

# 256 bytes at the end of L1 and UB are kept back, as other users of these cores do.
RESERVED = 256


def _spaces(hbm: int) -> tuple[MemorySpace, ...]:
    return (
        MemorySpace("global", hbm * GIB, 32, "grid"),
        MemorySpace("l1", 512 * KIB - RESERVED, 32, "block"),
        MemorySpace("l0a", 64 * KIB, 512, "block"),
        MemorySpace("l0b", 64 * KIB, 512, "block"),
        MemorySpace("l0c", 128 * KIB, 512, "block"),
        MemorySpace("ub", 192 * KIB - RESERVED, 32, "block"),  # of each of the two vector cores
    )


def _info(arch: str, cores: int, clock: float, hbm: int, bandwidth: float) -> TargetInfo:
    """``clock`` in GHz, ``hbm`` in GiB, ``bandwidth`` in TB/s. The cube unit does one 16 x 16 x 16 step of 16 bits a clock."""
    step = 2 * 16**3 * cores * clock * 1e9
    return TargetInfo(
        Target("ascend", arch),
        _spaces(hbm),
        ENGINES,
        TOKENS,
        subgroup=1,
        max_threads=1,
        dtypes=DTYPES,
        atoms=tiles.ATOMS,
        peaks={
            "float16": step,
            "bfloat16": step,
            "int8": 2 * step,
            "float32": step / 4,
            "global": bandwidth * 1e12,
        },
        cores=cores,
        clock=clock * 1e9,
        registers=1,
        features=frozenset({"cube", "vector", "fixpipe", "nd2nz", "two_vector_cores"}),
        sources=(COMPILER, SECONDARY),
        estimated=("clock", "peaks", "tokens"),
    )


# Compiler's names: Ascend910B1 and so on; 910_9391 and 910_9362 are one die of the A3 generation.
TARGETS = (
    _info("910B1", 24, 1.85, 64, 1.6),
    _info("910B2", 24, 1.8, 64, 1.6),
    _info("910B3", 20, 1.8, 64, 1.6),
    _info("910B4", 20, 1.65, 32, 0.8),
    _info("910_9391", 24, 1.85, 64, 1.6),
    _info("910_9362", 20, 1.85, 64, 1.6),
)
