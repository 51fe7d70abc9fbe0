"""Facts of WebGPU devices: the limits that every device grants, and those that well-known adapters do.

A WebGPU device is known by its limits and features, not by its chip; clocks and rates are guesses for ranking alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tile_core.hardware import Atom, Engine, MemorySpace, Target, TargetInfo, Token

from .atoms import COOPERATIVE, MATRIX, SIMDGROUP

KIB, MIB = 1024, 1024**2

STANDARD = "W3C WebGPU, Limits: defaults"
WGSL = "W3C WebGPU Shading Language"

# Types of less than 32 bits are packed into words of tensors; float16 is computed with natively where there is shader-f16.
DTYPES = frozenset(
    ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "float16", "bfloat16", "float32")
)

# One cooperative stream: nothing in WGSL works asynchronously to the invocations.
ENGINES = (
    Engine("alu", "synchronous"),
    Engine("sfu", "synchronous"),
    Engine("global", "interlock", "thread", shared=True),
    Engine("shared", "interlock", "thread", shared=True),
)
TENSOR = Engine("tensor", "interlock", "warp")
TOKENS = (Token("barrier"),)  # workgroupBarrier


@dataclass(frozen=True, slots=True)
class Granted:
    """What a device grants: bytes of workgroup memory and of one storage binding, invocations, tensors of a launch, features.

    ``subgroup``: invocations that exchange values; 1: none. ``word``: by which an adapter's name is known.
    """

    arch: str
    workgroup: int
    binding: int
    invocations: int
    buffers: int
    features: frozenset[str] = frozenset()
    subgroup: int = 1
    word: str = ""

    def limits(self) -> dict[str, int]:
        """Limits as a device is asked for them."""
        return {
            "max-compute-workgroup-storage-size": self.workgroup,
            "max-compute-invocations-per-workgroup": self.invocations,
            "max-compute-workgroup-size-x": self.invocations,
            "max-storage-buffer-binding-size": self.binding,
            "max-storage-buffers-per-shader-stage": self.buffers,
        }


ALL_FEATURES = frozenset({"shader-f16", "subgroups", "timestamp-query"})

APPLE = Granted("apple", 32 * KIB, 4096 * MIB - 4, 1024, 10, ALL_FEATURES, 32, "apple")
NVIDIA = Granted("nvidia", 48 * KIB, 2048 * MIB - 4, 1024, 16, ALL_FEATURES, 32, "nvidia")


def _with_matrices(known: Granted) -> Granted:
    """The same adapter in a browser that was started with the experimental feature; so it is never chosen by itself."""
    return replace(known, arch=f"{known.arch}_matrix", features=known.features | {MATRIX}, word="")


GRANTED = (
    Granted("default", 16 * KIB, 128 * MIB, 256, 8),
    Granted("lavapipe", 32 * KIB, 128 * MIB, 1024, 32, ALL_FEATURES, 8, "llvmpipe"),
    APPLE,
    NVIDIA,
    _with_matrices(APPLE),
    _with_matrices(NVIDIA),
)
BY_ARCH: Mapping[str, Granted] = {g.arch: g for g in GRANTED}


def granted(target: Target) -> Granted:
    """What devices of a target grant."""
    return BY_ARCH[target.arch or "default"]


def _info(
    arch: str,
    *,
    cores: int,
    clock: float,
    peaks: Mapping[str, float],
    banks: int,
    registers: int,
    source: str,
    atoms: tuple[Atom, ...] = (),
) -> TargetInfo:
    limits = BY_ARCH[arch]
    return TargetInfo(
        Target("webgpu", arch),
        (
            MemorySpace("global", limits.binding, 256, "grid"),
            MemorySpace("shared", limits.workgroup, 16, "block", banks=banks),
            MemorySpace("register", 64 * KIB, 4, "block"),
        ),
        (*ENGINES, TENSOR) if atoms else ENGINES,
        TOKENS,
        subgroup=limits.subgroup,
        max_threads=limits.invocations,
        dtypes=DTYPES,
        atoms=atoms,
        peaks=peaks,
        cores=cores,
        clock=clock,
        registers=registers,
        features=limits.features,
        sources=(STANDARD, WGSL, source),
        estimated=("peaks", "clock", "cores", "registers", "spaces"),
    )


TARGETS = (
    _info(
        "default",
        cores=8,
        clock=1e9,
        peaks={"float32": 1e12, "global": 50e9},
        banks=32,
        registers=64,
        source="rates: a small integrated GPU",
    ),
    _info(
        "lavapipe",
        cores=2,
        clock=2e9,
        peaks={"float32": 20e9, "float16": 20e9, "global": 10e9},
        banks=0,  # workgroup memory is the processor's cache
        registers=128,
        source="limits granted by Mesa 22.3 lavapipe, LLVM 15, 256-bit vectors, through wgpu 0.32; rates: two slow cores",
    ),
    _info(
        "apple",
        cores=10,
        clock=1.4e9,
        peaks={"float32": 3.6e12, "float16": 3.6e12, "global": 100e9},
        banks=32,
        registers=128,
        source="limits as Metal gives them to a browser on an M2; not measured",
    ),
    _info(
        "nvidia",
        cores=100,
        clock=1.7e9,
        peaks={"float32": 40e12, "float16": 40e12, "global": 1e12},
        banks=32,
        registers=255,
        source="limits of NVIDIA's Vulkan driver (maxComputeSharedMemorySize 49152); not measured",
    ),
    # no banks: how matrices are loaded is the driver's business, so tiles stay in straight rows
    _info(
        "apple_matrix",
        cores=10,
        clock=1.4e9,
        peaks={"float32": 3.6e12, "float16": 3.6e12, "global": 100e9},
        banks=0,
        registers=128,
        source="as apple; experimental feature of Chromium, not run on any device",
        atoms=SIMDGROUP,
    ),
    _info(
        "nvidia_matrix",
        cores=100,
        clock=1.7e9,
        peaks={"float32": 40e12, "float16": 170e12, "global": 1e12},
        banks=0,
        registers=255,
        source="as nvidia; experimental feature of Chromium, not run on any device",
        atoms=COOPERATIVE,
    ),
)
