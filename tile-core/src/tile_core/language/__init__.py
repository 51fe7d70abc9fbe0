"""The language: what a kernel may use, imported as ``T``.

Names and meaning follow TileLang's, so that its kernels move over by changing an import.
"""

# `__exp` and its like are public names: see `approximate`.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import builtins as _builtins
import sys as _sys
from typing import Any

from ..dtypes import ALL as _TYPES
from ..dtypes import DType
from ..dtypes import dtype as _dtype
from .allocation import (
    alloc_fragment,
    alloc_global,
    alloc_local,
    alloc_shared,
    alloc_var,
    const,
    empty,
    make_tensor,
    reshape,
    view,
)
from .annotations import (
    annotate_layout,
    use_swizzle,
)
from .approximate import (
    __cos,
    __exp,
    __exp2,
    __exp10,
    __log,
    __log2,
    __log10,
    __sin,
    __tan,
    fast_rcp,
)
from .atomics import (
    atomic_add,
    atomic_addx2,
    atomic_addx4,
    atomic_and,
    atomic_load,
    atomic_max,
    atomic_min,
    atomic_or,
    atomic_store,
)
from .control import (
    Kernel,
    Parallel,
    Persistent,
    Pipelined,
    get_block_binding,
    get_block_bindings,
    get_block_extent,
    get_thread_binding,
    get_thread_bindings,
    get_thread_extent,
    get_thread_extents,
    grid,
    serial,
    unroll,
    vectorized,
)
from .debug import (
    assume,
    device_assert,
    print,
    sync_threads,
)
from .macros import (
    macro,
)
from .mathematics import (
    Cast,
    Select,
    abs,
    align_up,
    bitwise_and,
    bitwise_not,
    bitwise_or,
    bitwise_xor,
    cast,
    ceil,
    ceildiv,
    clamp,
    clz,
    cos,
    erf,
    exp,
    exp2,
    exp10,
    floor,
    floordiv,
    floormod,
    fma,
    ieee_add,
    ieee_fdiv,
    ieee_fmaf,
    ieee_frcp,
    ieee_frsqrt,
    ieee_fsqrt,
    ieee_mul,
    ieee_sub,
    if_then_else,
    infinity,
    isfinite,
    isinf,
    isnan,
    log,
    log2,
    log10,
    max,
    max_value,
    min,
    min_value,
    popcount,
    pow,
    reinterpret,
    round,
    rsqrt,
    shift_left,
    shift_right,
    sigmoid,
    sin,
    sqrt,
    tan,
    tanh,
    trunc,
    truncdiv,
    truncmod,
)
from .matrix import (
    GemmWarpPolicy,
    gemm,
)
from .movement import (
    clear,
    copy,
    fill,
    transpose,
)
from .reduction import (
    all_of,
    any_of,
    cummax,
    cumsum,
    reduce,
    reduce_absmax,
    reduce_abssum,
    reduce_bitand,
    reduce_bitor,
    reduce_bitxor,
    reduce_max,
    reduce_min,
    reduce_sum,
)
from .trace import (
    prim_func,
)
from .types import (
    Buffer,
    StridedTensor,
    Tensor,
    dynamic,
    ptr,
    symbolic,
)

bool = _TYPES["bool"]
int1 = _TYPES["int1"]
int2 = _TYPES["int2"]
int4 = _TYPES["int4"]
int8 = _TYPES["int8"]
int16 = _TYPES["int16"]
int32 = _TYPES["int32"]
int64 = _TYPES["int64"]
uint1 = _TYPES["uint1"]
uint2 = _TYPES["uint2"]
uint4 = _TYPES["uint4"]
uint8 = _TYPES["uint8"]
uint16 = _TYPES["uint16"]
uint32 = _TYPES["uint32"]
uint64 = _TYPES["uint64"]
float16 = _TYPES["float16"]
bfloat16 = _TYPES["bfloat16"]
float32 = _TYPES["float32"]
tfloat32 = _TYPES["tfloat32"]
float64 = _TYPES["float64"]
float8_e3m4 = _TYPES["float8_e3m4"]
float8_e4m3 = _TYPES["float8_e4m3"]
float8_e4m3b11fnuz = _TYPES["float8_e4m3b11fnuz"]
float8_e4m3fn = _TYPES["float8_e4m3fn"]
float8_e4m3fnuz = _TYPES["float8_e4m3fnuz"]
float8_e5m2 = _TYPES["float8_e5m2"]
float8_e5m2fnuz = _TYPES["float8_e5m2fnuz"]
float8_e8m0fnu = _TYPES["float8_e8m0fnu"]
float6_e2m3fn = _TYPES["float6_e2m3fn"]
float6_e3m2fn = _TYPES["float6_e3m2fn"]
float4_e2m1fn = _TYPES["float4_e2m1fn"]
float4_e2m1_unpacked = _TYPES["float4_e2m1_unpacked"]
half = float16
float = float32
double = float64
int = int32
uint = uint32
dtype = _dtype
Serial, Unroll, Vectorized = serial, unroll, vectorized


def __getattr__(name: str) -> Any:
    """Vector types such as ``T.float16x4``; for anything else an error that proposes the nearest name."""
    base, _, lanes = name.rpartition("x")
    if base in _TYPES and lanes.isdigit() and 1 < _builtins.int(lanes) <= 64:
        return _TYPES[base].vector(_builtins.int(lanes))
    raise AttributeError(f"T has no {name!r}", name=name, obj=_sys.modules[__name__])


__all__ = [
    "Buffer",
    "Cast",
    "DType",
    "GemmWarpPolicy",
    "Kernel",
    "Parallel",
    "Persistent",
    "Pipelined",
    "Select",
    "Serial",
    "StridedTensor",
    "Tensor",
    "Unroll",
    "Vectorized",
    "__cos",
    "__exp",
    "__exp2",
    "__exp10",
    "__log",
    "__log10",
    "__log2",
    "__sin",
    "__tan",
    "abs",
    "align_up",
    "all_of",
    "alloc_fragment",
    "alloc_global",
    "alloc_local",
    "alloc_shared",
    "alloc_var",
    "annotate_layout",
    "any_of",
    "assume",
    "atomic_add",
    "atomic_addx2",
    "atomic_addx4",
    "atomic_and",
    "atomic_load",
    "atomic_max",
    "atomic_min",
    "atomic_or",
    "atomic_store",
    "bfloat16",
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "bool",
    "cast",
    "ceil",
    "ceildiv",
    "clamp",
    "clear",
    "clz",
    "const",
    "copy",
    "cos",
    "cummax",
    "cumsum",
    "device_assert",
    "double",
    "dtype",
    "dynamic",
    "empty",
    "erf",
    "exp",
    "exp10",
    "exp2",
    "fast_rcp",
    "fill",
    "float",
    "float16",
    "float32",
    "float4_e2m1_unpacked",
    "float4_e2m1fn",
    "float64",
    "float6_e2m3fn",
    "float6_e3m2fn",
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "floor",
    "floordiv",
    "floormod",
    "fma",
    "gemm",
    "get_block_binding",
    "get_block_bindings",
    "get_block_extent",
    "get_thread_binding",
    "get_thread_bindings",
    "get_thread_extent",
    "get_thread_extents",
    "grid",
    "half",
    "ieee_add",
    "ieee_fdiv",
    "ieee_fmaf",
    "ieee_frcp",
    "ieee_frsqrt",
    "ieee_fsqrt",
    "ieee_mul",
    "ieee_sub",
    "if_then_else",
    "infinity",
    "int",
    "int1",
    "int16",
    "int2",
    "int32",
    "int4",
    "int64",
    "int8",
    "isfinite",
    "isinf",
    "isnan",
    "log",
    "log10",
    "log2",
    "macro",
    "make_tensor",
    "max",
    "max_value",
    "min",
    "min_value",
    "popcount",
    "pow",
    "prim_func",
    "print",
    "ptr",
    "reduce",
    "reduce_absmax",
    "reduce_abssum",
    "reduce_bitand",
    "reduce_bitor",
    "reduce_bitxor",
    "reduce_max",
    "reduce_min",
    "reduce_sum",
    "reinterpret",
    "reshape",
    "round",
    "rsqrt",
    "serial",
    "shift_left",
    "shift_right",
    "sigmoid",
    "sin",
    "sqrt",
    "symbolic",
    "sync_threads",
    "tan",
    "tanh",
    "tfloat32",
    "transpose",
    "trunc",
    "truncdiv",
    "truncmod",
    "uint",
    "uint1",
    "uint16",
    "uint2",
    "uint32",
    "uint4",
    "uint64",
    "uint8",
    "unroll",
    "use_swizzle",
    "vectorized",
    "view",
]
