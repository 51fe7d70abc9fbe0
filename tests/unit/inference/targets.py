"""Small descriptions of targets, made from the vendors' tables of instructions."""

from __future__ import annotations

import tile_backend_ascend.tiles as ascend
import tile_backend_cuda.atoms as cuda
import tile_backend_metal.atoms as metal
import tile_backend_rocm.atoms as rocm
from tile_core.hardware import Atom, Engine, MemorySpace, Target, TargetInfo

DTYPES = frozenset(
    ("float16", "bfloat16", "float32", "float64", "int8", "int32", "float8_e4m3fn", "float8_e5m2", "bool")
)
ALU, TENSOR = Engine("alu", "synchronous"), Engine("tensor", "interlock")


def simt(
    name: str,
    atoms: tuple[Atom, ...],
    subgroup: int = 32,
    spans: tuple[int, ...] = (),
    registers: int = 255,
    features: tuple[str, ...] = (),
) -> TargetInfo:
    spaces = (
        MemorySpace("global", 1 << 36, 256, "grid"),
        MemorySpace("shared", 228 << 10, 128, "block", banks=32),
        MemorySpace("fragment", registers * 4, 4, "thread"),
    )
    return TargetInfo(
        Target.parse(name),
        spaces,
        (ALU, TENSOR),
        (),
        subgroup,
        1024,
        DTYPES,
        atoms,
        {"float16": 1e15, "global": 3e12},
        132,
        1.7e9,
        registers,
        spans,
        frozenset(features),
    )


AMPERE = simt("cuda:sm_80", cuda.SM_80)
HOPPER = simt("cuda:sm_90a", cuda.SM_90A, spans=(128, 64, 32), features=("wgmma",))
CDNA3 = simt("rocm:gfx942", rocm.GFX942, subgroup=64, registers=512)
APPLE = simt("metal:apple9", metal.ATOMS)
PLAIN = simt("toy:none", ())
CPU = TargetInfo(
    Target.parse("cpu"),
    (MemorySpace("global", 1 << 36, 64, "grid"),),
    (Engine("core", "synchronous", "block"),),
    (),
    1,
    1,
    DTYPES,
    (),
    {"float32": 1e11, "global": 5e10},
    2,
    3e9,
)
ASCEND = TargetInfo(
    Target.parse("ascend:910b"),
    (MemorySpace("global", 1 << 36, 64, "grid"), MemorySpace("shared", 512 << 10, 32, "block")),
    (Engine("vector", "synchronous", "block"), Engine("cube", "signal", "block")),
    (),
    1,
    1,
    DTYPES,
    ascend.ATOMS,
    {"float16": 3e14, "global": 1e12},
    20,
    1.8e9,
)
