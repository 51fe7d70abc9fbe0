"""Facts of each architecture: memories, types, rates. Replace the figures, and name where each was read."""

from __future__ import annotations

from tile_core.hardware import MemorySpace, Target, TargetInfo

from .engines import ENGINES, TOKENS
from .instructions import ATOMS

KIB, GIB = 1024, 1024**3

TARGETS = (
    TargetInfo(
        Target("toy", "one"),
        spaces=(
            MemorySpace("global", 16 * GIB, 256, "grid"),
            MemorySpace("shared", 64 * KIB, 16, "block", banks=32),
            MemorySpace("register", 128 * KIB, 4, "block"),
        ),
        engines=ENGINES,
        tokens=TOKENS,
        subgroup=32,
        max_threads=1024,
        dtypes=frozenset(
            {
                *("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"),
                *("float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2"),
            }
        ),
        atoms=ATOMS,
        peaks={
            "float32": 4e12,
            "float16": 16e12,
            "bfloat16": 16e12,
            "global": 2e11,
        },  # operations, bytes per second
        cores=16,
        clock=1e9,
        registers=128,
        sources=("none: an imagined chip",),
        estimated=("peaks", "cores", "clock"),
    ),
)
