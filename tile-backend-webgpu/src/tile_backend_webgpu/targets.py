"""Facts of WebGPU devices: the limits that every device grants, and those that two well-known adapters do.

A WebGPU device is known by its limits and features, not by its chip; clocks and rates are guesses for ranking alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tile_core.hardware import Engine, MemorySpace, Target, TargetInfo, Token

KIB, MIB = 1024, 1024**2

STANDARD = "W3C WebGPU, Limits: defaults"
WGSL = "W3C WebGPU Shading Language"

DTYPES = frozenset({"bool", "int32", "uint32", "float32"})

# One cooperative stream: nothing in WGSL works asynchronously to the invocations.
ENGINES = (
    Engine("alu", "synchronous"),
    Engine("sfu", "synchronous"),
    Engine("global", "interlock", "thread", shared=True),
    Engine("shared", "interlock", "thread", shared=True),
)
TOKENS = (Token("barrier"),)  # workgroupBarrier


@dataclass(frozen=True, slots=True)
class Limits:
    """What a device grants: bytes of workgroup memory and of one storage binding, invocations, subgroup size (1: none)."""

    workgroup: int
    binding: int
    invocations: int
    subgroup: int


def _info(
    arch: str,
    limits: Limits,
    features: frozenset[str],
    *,
    cores: int,
    clock: float,
    peaks: Mapping[str, float],
    source: str,
) -> TargetInfo:
    return TargetInfo(
        Target("webgpu", arch),
        (
            MemorySpace("global", limits.binding, 256, "grid"),
            MemorySpace("shared", limits.workgroup, 16, "block", banks=32),
            MemorySpace("register", 64 * KIB, 4, "block"),
        ),
        ENGINES,
        TOKENS,
        subgroup=limits.subgroup,
        max_threads=limits.invocations,
        dtypes=DTYPES | {"float16"} if "shader-f16" in features else DTYPES,
        atoms=(),
        peaks=peaks,
        cores=cores,
        clock=clock,
        registers=64,
        features=features,
        sources=(STANDARD, WGSL, source),
        estimated=("peaks", "clock", "cores", "registers", "spaces"),
    )


TARGETS = (
    _info(
        "default",
        Limits(16384, 128 * MIB, 256, 1),
        frozenset(),
        cores=8,
        clock=1e9,
        peaks={"float32": 1e12, "global": 50e9},
        source="rates: a small integrated GPU",
    ),
    _info(
        "lavapipe",
        Limits(32768, 128 * MIB, 1024, 8),
        frozenset({"shader-f16", "subgroups", "timestamp-query"}),
        cores=2,
        clock=2e9,
        peaks={"float32": 20e9, "float16": 20e9, "global": 10e9},
        source="limits granted by Mesa 22.3 lavapipe, LLVM 15, 256-bit vectors, through wgpu 0.32; rates: two slow cores",
    ),
    _info(
        "apple",
        Limits(32768, 4096 * MIB - 4, 1024, 32),
        frozenset({"shader-f16", "subgroups", "timestamp-query"}),
        cores=10,
        clock=1.4e9,
        peaks={"float32": 3.6e12, "float16": 3.6e12, "global": 100e9},
        source="limits as Metal gives them to a browser on an M2; not measured",
    ),
)
