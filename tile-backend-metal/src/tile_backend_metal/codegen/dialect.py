"""How the Metal Shading Language spells scalar types, functions and barriers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tile_core.dtypes import DType
from tile_core.errors import Unsupported
from tile_core.lowering.printer import Dialect

from .names import RESERVED

# MSL 2.1: there is no double, and `long` has 64 bits.
TYPES = {
    "bool": "bool",
    "int8": "char",
    "int16": "short",
    "int32": "int",
    "int64": "long",
    "uint8": "uchar",
    "uint16": "ushort",
    "uint32": "uint",
    "uint64": "ulong",
    "float16": "half",
    "bfloat16": "bfloat",
    "float32": "float",
    "float8_e4m3fn": "fp8_e4m3_t",
    "float8_e5m2": "fp8_e5m2_t",
}
NARROW = ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")

# MSL 6.5: functions of metal::precise keep their accuracy whatever the compiler is told; those of metal::fast do not ask for it.
PRECISE = (
    "exp",
    "exp2",
    "exp10",
    "log",
    "log2",
    "log10",
    "sqrt",
    "rsqrt",
    "sin",
    "cos",
    "tan",
    "tanh",
    "pow",
)
PLAIN = {
    "floor": "floor",
    "ceil": "ceil",
    "round": "rint",  # ties to even
    "trunc": "trunc",
    "fma": "fma",
    "min": "fmin",
    "max": "fmax",
    "abs": "fabs",
    "truncmod": "fmod",
}
FAST = ("exp", "exp2", "exp10", "log", "log2", "log10", "sin", "cos", "tan")
OWN = {
    "erf": "tile_erf",
    "sigmoid": "tile_sigmoid",
    "isnan": "tile_isnan",
    "isinf": "tile_isinf",
    "isfinite": "tile_isfinite",
    "truncdiv": "tile_truncdiv",
    "floordiv": "tile_float_floordiv",
    "floormod": "tile_float_floormod",
    "__rcp": "tile_fast_rcp",
    **{f"ieee_{name}": f"tile_ieee_{name}" for name in ("add", "sub", "mul", "div", "sqrt", "rcp", "rsqrt")},
}
INTEGER = {
    "floordiv": "tile_floordiv",
    "floormod": "tile_floormod",
    "min": "tile_min",
    "max": "tile_max",
    "abs": "tile_abs",
    "pow": "tile_power",
    "popcount": "metal::popcount",
    "clz": "metal::clz",
}


def _functions() -> dict[str, str]:
    out = {f"{name}.float": f"metal::precise::{name}" for name in PRECISE}
    out |= {f"{name}.float": f"metal::{spelled}" for name, spelled in PLAIN.items()}
    out |= {f"__{name}.float": f"metal::fast::{name}" for name in FAST}
    out |= {f"{name}.float": spelled for name, spelled in OWN.items()}
    return out | {f"{name}.{kind}": spelled for name, spelled in INTEGER.items() for kind in ("int", "uint")}


def _atomic(op: str, t: DType) -> str:
    """Its name without the address space, which the printer adds."""
    if t.bits not in (16, 32) or t.name not in TYPES:
        raise Unsupported(f"no atomic {op} of {t} on this target", help="use 32-bit values")
    return f"tile_atomic_{op}"


def _failed(message: str) -> str:
    raise Unsupported("an assertion inside a kernel", why="MSL has no way to stop one")


def _printed(message: str, values: Sequence[tuple[str, DType]]) -> str:
    raise Unsupported("a kernel prints", why="MSL before 3.2 has no output")


def barrier(flags: str) -> Callable[[str, int], str]:
    """How a barrier of the whole block is spelled that orders the memories of ``flags``."""

    def spelled(number: str, threads: int) -> str:
        if threads:
            raise Unsupported("a barrier of some of a block's threads", why="MSL has none")
        return f"metal::threadgroup_barrier({flags});"

    return spelled


SHARED_ONLY = "metal::mem_flags::mem_threadgroup"
BOTH = f"metal::mem_flags::mem_device | {SHARED_ONLY}"
FENCE = f"metal::atomic_thread_fence({BOTH}, metal::memory_order_seq_cst, metal::thread_scope_device);"  # MSL 6.15.3

MSL = Dialect(
    types=TYPES,
    functions=_functions(),
    to_float={name: f"{name}_to_float" for name in NARROW},
    from_float={name: f"float_to_{name}" for name in NARROW},
    atomics=_atomic,
    barrier=barrier(BOTH),
    address=lambda pointer: pointer,
    unroll="#pragma clang loop unroll(full)",
    bitcast="tile_bitcast",
    failed=_failed,
    printed=_printed,
    reserved=RESERVED,
    fence=FENCE,
    wide=("long", "L"),
)


def dialect(device: bool) -> Dialect:
    """That of one launch. ``device``: its barriers also order accesses of global memory."""
    return replace(MSL, barrier=barrier(BOTH if device else SHARED_ONLY))
