"""Facts of NVIDIA's architectures, each with the figures of one well-known chip of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tile_core.hardware import Atom, BulkRules, Engine, MemorySpace, Target, TargetInfo, Token

from . import atoms

KIB, MIB, GIB = 1024, 1024**2, 1024**3
TERA = 1e12

# CUDA C++ Programming Guide, "Compute Capabilities": limits of a block and of an SM, shared memory a block may ask for.
GUIDE = "CUDA C++ Programming Guide, Compute Capabilities"
PTX = "PTX ISA"

INTEGERS = frozenset({"bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"})
BASE = INTEGERS | {"float16", "float32", "float64"}
AMPERE_TYPES = BASE | {"bfloat16", "tfloat32"}
FP8_TYPES = AMPERE_TYPES | {"float8_e4m3fn", "float8_e5m2"}
FP4_TYPES = FP8_TYPES | {"float8_e8m0fnu", "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn"}

# Units. `shared` ones are bandwidths. The CUDA cores and the special function unit hold their warp until done.
# Guide: 16 results of special functions per clock and SM, 32 banks of 4 bytes. Latencies, issue clocks and rates of the copy
# engines are estimates from microbenchmarks of others: L2 gives an SM of an A100 about 5.1 TB/s / 108,
# one of a H100 about 56 bytes a clock, a bulk copy arrives after about 700 clocks.
ALU = Engine("alu", "synchronous")
SFU = Engine("sfu", "synchronous", rate=16)
MEMORY = Engine("global", "interlock", "thread", shared=True)
BANKS = Engine("shared", "interlock", "thread", shared=True, rate=128)
MMA = Engine("tensor", "interlock", "warp", latency=30)
# PTX ISA, wgmma.commit_group / wait_group: seen by its issuer alone
WGMMA = Engine("tensor", "group", "warpgroup", latency=30, issue=20)
# PTX ISA, tcgen05.commit arrives on an mbarrier. One thread issues for each warpgroup, whose warps reach all lanes of its sums.
TCGEN05 = Engine("tensor", "signal", "warpgroup", latency=60, issue=20, signal=40)
# PTX ISA, cp.async.commit_group / wait_group
CP_ASYNC = Engine("copy", "group", "thread", latency=600, issue=20, signal=30, rate=48)
# PTX ISA, cp.async.bulk completes on an mbarrier, in any order
TMA = Engine("copy", "signal", "thread", in_order=False, latency=700, issue=20, signal=40, rate=56)
# PTX ISA, cp.async.bulk.commit_group / wait_group
TMA_STORE = Engine("store", "group", "thread", latency=700, issue=20, rate=56)

CORES = (ALU, SFU, MEMORY, BANKS)
VOLTA = (MMA, *CORES)
AMPERE = (CP_ASYNC, MMA, *CORES)
HOPPER = (TMA, TMA_STORE, WGMMA, *CORES)
BLACKWELL = (TMA, TMA_STORE, TCGEN05, *CORES)
CONSUMER_BLACKWELL = (TMA, TMA_STORE, MMA, *CORES)

BARRIER = Token("barrier")
NAMED = Token("named_barrier", limit=15)  # PTX ISA, bar: ids 0 to 15; 0 is __syncthreads
GROUP = Token("commit_group")
MBARRIER = Token("mbarrier")

OLD_TOKENS = (BARRIER, NAMED)
AMPERE_TOKENS = (GROUP, *OLD_TOKENS)
TMA_TOKENS = (MBARRIER, GROUP, *OLD_TOKENS)

TMA_SPANS = (128, 64, 32)  # PTX ISA, tensor map swizzle modes and matrix descriptors
# CUDA driver API, cuTensorMapEncodeTiled; a warpgroup is 128 threads. Clusters of two: of four, only 30 fit the 132 SMs of an
# H200 (cuOccupancyMaxActiveClusters).
ADDS = frozenset({"float32", "float16", "bfloat16"})  # PTX ISA, cp.reduce.async.bulk.tensor
TMA_RULES = BulkRules(
    alignment=16, spans=TMA_SPANS, largest=256, rank=5, group=128, place=128, sharing=2, adds=ADDS
)
# a block that shares copies is told by the other one's matrix unit: tcgen05.commit.multicast, which is not used yet
ALONE_RULES = replace(TMA_RULES, sharing=1)


@dataclass(frozen=True, slots=True)
class Chip:
    """The chip that stands for an architecture. ``memory`` in bytes, ``bandwidth`` in bytes per second, ``clock`` in Hz.

    ``cache``: MiB of L2 (the architecture's white paper; the H200 reports 60).
    """

    name: str
    cores: int
    clock: float
    memory: int
    bandwidth: float
    cache: int
    sheet: str


def _info(
    arch: str,
    chip: Chip,
    shared: int,
    peaks: Mapping[str, float],
    *,
    dtypes: frozenset[str],
    engines: tuple[Engine, ...],
    tokens: tuple[Token, ...],
    table: tuple[Atom, ...] = (),
    features: tuple[str, ...] = (),
    extra: tuple[MemorySpace, ...] = (),
    estimated: tuple[str, ...] = (),
) -> TargetInfo:
    """``shared``: KiB that one block may ask for. ``peaks`` in tera-operations per second."""
    spaces = (
        MemorySpace("global", chip.memory, 256, "grid"),
        MemorySpace("shared", shared * KIB, 16, "block", banks=32),
        MemorySpace("register", 256 * KIB, 4, "block"),
        *extra,
    )
    return TargetInfo(
        Target("cuda", arch),
        spaces,
        engines,
        tokens,
        subgroup=32,
        max_threads=1024,
        dtypes=dtypes,
        atoms=table,
        peaks=_rates(peaks) | {"global": chip.bandwidth},
        cores=chip.cores,
        clock=chip.clock,
        registers=255,
        panel_spans=TMA_SPANS if TMA in engines else (),
        features=frozenset(features),
        cache=chip.cache * MIB,
        bulk=(ALONE_RULES if TCGEN05 in engines else TMA_RULES) if TMA in engines else None,
        sources=(GUIDE, PTX, f"{chip.name}: {chip.sheet}"),
        estimated=estimated,
    )


def _rates(peaks: Mapping[str, float]) -> dict[str, float]:
    rates = {name: tera * TERA for name, tera in peaks.items()}
    return rates | ({"uint8": rates["int8"]} if "int8" in rates else {})


V100 = Chip("V100 SXM2", 80, 1.53e9, 32 * GIB, 0.9e12, 6, "NVIDIA Tesla V100 GPU architecture whitepaper")
T4 = Chip("T4", 40, 1.59e9, 16 * GIB, 0.32e12, 4, "NVIDIA Turing GPU architecture whitepaper")
A100 = Chip("A100 SXM 80GB", 108, 1.41e9, 80 * GIB, 2.039e12, 40, "NVIDIA A100 data sheet")
A10 = Chip("A10", 72, 1.695e9, 24 * GIB, 0.6e12, 6, "NVIDIA A10 data sheet")
L40S = Chip("L40S", 142, 2.52e9, 48 * GIB, 0.864e12, 96, "NVIDIA L40S data sheet")
H200 = Chip("H200 SXM", 132, 1.83e9, 141 * 10**9, 4.8e12, 60, "NVIDIA H200 data sheet")
B200 = Chip("B200 SXM", 148, 1.85e9, 180 * 10**9, 8e12, 126, "NVIDIA DGX B200 data sheet")
B300 = Chip("B300 SXM", 148, 1.92e9, 288 * 10**9, 8e12, 126, "NVIDIA DGX B300 data sheet")
PRO6000 = Chip(
    "RTX PRO 6000", 188, 2.617e9, 96 * GIB, 1.792e12, 128, "NVIDIA RTX PRO 6000 Blackwell data sheet"
)

# PTX ISA, tcgen05: 128 lanes x 512 columns of 32 bits for each SM
TENSOR_MEMORY = MemorySpace("tensor", 128 * 512 * 4, 4, "block")

# Peaks are dense rates; float32 and float64 are those of the CUDA cores where no matrix rate is named in the sheet.
TARGETS = (
    _info(
        "sm_90a",
        H200,
        227,
        {
            "float16": 989.5,
            "bfloat16": 989.5,
            "tfloat32": 494.7,
            "float8_e4m3fn": 1979,
            "float8_e5m2": 1979,
            "int8": 1979,
            "float32": 66.9,
            "float64": 66.9,
        },
        dtypes=FP8_TYPES,
        engines=HOPPER,
        tokens=TMA_TOKENS,
        table=atoms.SM_90A,
        features=(
            "wgmma",
            "tma",
            "red_vectors",
            "griddep",
            "mbarrier",
            "cluster",
            "setmaxnreg",
            "stmatrix",
            "ldmatrix",
            "cp_async",
        ),
        estimated=(
            "clock",
        ),  # the boost clock that its peak is stated for; the card sustains 1.5 to 1.6 GHz at 700 W
    ),
    _info(
        "sm_100a",
        B200,
        227,
        {
            "float16": 2250,
            "bfloat16": 2250,
            "tfloat32": 1125,
            "float8_e4m3fn": 4500,
            "float8_e5m2": 4500,
            "int8": 4500,
            "float4_e2m1fn": 9000,
            "float32": 75,
            "float64": 37,
        },
        dtypes=FP4_TYPES,
        engines=BLACKWELL,
        tokens=TMA_TOKENS,
        table=atoms.SM_100A,
        features=(
            "tcgen05",
            "tma",
            "red_vectors",
            "griddep",
            "mbarrier",
            "cluster",
            "setmaxnreg",
            "stmatrix",
            "ldmatrix",
            "cp_async",
        ),
        extra=(TENSOR_MEMORY,),
        estimated=("clock", "peaks"),
    ),
    _info(
        "sm_103a",
        B300,
        227,
        {
            "float16": 2250,
            "bfloat16": 2250,
            "tfloat32": 1125,
            "float8_e4m3fn": 4500,
            "float8_e5m2": 4500,
            "int8": 150,
            "float4_e2m1fn": 13500,
            "float32": 75,
            "float64": 1.2,
        },
        dtypes=FP4_TYPES,
        engines=BLACKWELL,
        tokens=TMA_TOKENS,
        table=atoms.SM_103A,
        features=(
            "tcgen05",
            "tma",
            "red_vectors",
            "griddep",
            "mbarrier",
            "cluster",
            "setmaxnreg",
            "stmatrix",
            "ldmatrix",
            "cp_async",
        ),
        extra=(TENSOR_MEMORY,),
        estimated=("clock", "peaks", "cores"),
    ),
    _info(
        "sm_120a",
        PRO6000,
        99,
        {
            "float16": 503.8,
            "bfloat16": 503.8,
            "tfloat32": 251.9,
            "float8_e4m3fn": 1007.6,
            "float8_e5m2": 1007.6,
            "int8": 1007.6,
            "float4_e2m1fn": 2015.2,
            "float32": 126,
            "float64": 1.97,
        },
        dtypes=FP4_TYPES,
        engines=CONSUMER_BLACKWELL,
        tokens=TMA_TOKENS,
        table=atoms.SM_120,
        features=("tma", "red_vectors", "griddep", "mbarrier", "stmatrix", "ldmatrix", "cp_async"),
    ),
    _info(
        "sm_89",
        L40S,
        99,
        {
            "float16": 362,
            "bfloat16": 362,
            "tfloat32": 183,
            "float8_e4m3fn": 733,
            "float8_e5m2": 733,
            "int8": 733,
            "float32": 91.6,
            "float64": 1.43,
        },
        dtypes=FP8_TYPES,
        engines=AMPERE,
        tokens=AMPERE_TOKENS,
        table=atoms.SM_89,
        features=("ldmatrix", "cp_async"),
    ),
    _info(
        "sm_86",
        A10,
        99,
        {"float16": 125, "bfloat16": 125, "tfloat32": 62.5, "int8": 250, "float32": 31.2, "float64": 0.49},
        dtypes=AMPERE_TYPES,
        engines=AMPERE,
        tokens=AMPERE_TOKENS,
        table=atoms.SM_86,
        features=("ldmatrix", "cp_async"),
    ),
    _info(
        "sm_80",
        A100,
        163,
        {"float16": 312, "bfloat16": 312, "tfloat32": 156, "int8": 624, "float32": 19.5, "float64": 19.5},
        dtypes=AMPERE_TYPES,
        engines=AMPERE,
        tokens=AMPERE_TOKENS,
        table=atoms.SM_80,
        features=("ldmatrix", "cp_async"),
    ),
    _info(
        "sm_75",
        T4,
        64,
        {"float16": 65, "int8": 130, "float32": 8.1, "float64": 0.25},
        dtypes=BASE,
        engines=VOLTA,
        tokens=OLD_TOKENS,
        table=atoms.SM_75,
        features=("ldmatrix",),
    ),
    # Volta's matrix instruction (m8n8k4 by quarter warps) is not in the atom table: gemms run on its CUDA cores.
    _info(
        "sm_70",
        V100,
        96,
        {"float16": 125, "float32": 15.7, "float64": 7.8},
        dtypes=BASE,
        engines=CORES,
        tokens=OLD_TOKENS,
    ),
)
