"""How CUDA C++ spells scalar types, functions and atomics, for sources without any include."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tile_core.dtypes import DType
from tile_core.lowering.cplusplus_dialect import NARROW, PLAIN

from ..prelude.table import PRELUDE_TYPES, table

# Single instructions, rounded to nearest or approximate.
FLOAT = {
    "ieee_add.float": "__fadd_rn",
    "ieee_sub.float": "__fsub_rn",
    "ieee_mul.float": "__fmul_rn",
    "ieee_div.float": "__fdiv_rn",
    "ieee_sqrt.float": "__fsqrt_rn",
    "ieee_rcp.float": "__frcp_rn",
    "ieee_rsqrt.float": "__frsqrt_rn",
    "__exp.float": "__expf",
    "__exp2.float": "tile_fast_exp2",
    "__exp10.float": "__exp10f",
    "__log.float": "__logf",
    "__log2.float": "__log2f",
    "__log10.float": "__log10f",
    "__sin.float": "__sinf",
    "__cos.float": "__cosf",
    "__tan.float": "__tanf",
    "__rcp.float": "tile_fast_rcp",
}


def _failed(message: str) -> str:
    text = message.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'{{ printf("assertion failed: {text}\\n"); __trap(); }}'


def _barrier(number: str, threads: int) -> str:
    return f"named_sync({number}, {threads});" if threads else "__syncthreads();"


def _address(pointer: str) -> str:
    return f"shared_address({pointer})"


FORMATS = {"int": "%lld", "uint": "%llu", "float": "%g", "bool": "%d"}
AS = {"int": "(long long)", "uint": "(unsigned long long)", "float": "(double)", "bool": "(int)"}


def _printed(message: str, values: Sequence[tuple[str, DType]]) -> str:
    text = message.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    parts = [text] if text else []
    shown: list[str] = []
    for value, t in values:
        parts.append(FORMATS[t.kind])
        inner = f"{t.name}_to_float({value})" if t.name in NARROW else value
        shown.append(f", {AS[t.kind]}({inner})")
    return f'printf("{" ".join(parts)}\\n"{"".join(shown)});'


RESERVED = frozenset(["threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize"])

# NVRTC knows the functions of CUDA's mathematics library, which has the C library's names, without any header.
CUDA = replace(
    PLAIN,
    functions={**PLAIN.functions, **FLOAT},
    barrier=_barrier,
    address=_address,
    unroll="#pragma unroll",
    fence="fence_gpu();",
    failed=_failed,
    printed=_printed,
    reserved=PLAIN.reserved | RESERVED | PRELUDE_TYPES | frozenset(table()),
)
