"""How HIP C++ spells scalar types, functions and atomics, for sources without any include."""

from __future__ import annotations

from dataclasses import replace

from tile_core.lowering.cplusplus_dialect import NARROW as ALIKE
from tile_core.lowering.cplusplus_dialect import PLAIN, whole_block

from ..prelude.table import PRELUDE_NAMES, table

# the kinds of 8-bit floats that CDNA3 has
FNUZ = {"float8_e4m3fnuz": "fp8_e4m3_fnuz_t", "float8_e5m2fnuz": "fp8_e5m2_fnuz_t"}
NARROW = (*ALIKE, *FNUZ)

# clang makes instructions of these without any library: the builtin's name on double, on float with an f behind
BUILTINS = {
    **{name: name for name in ("sqrt", "floor", "ceil", "trunc", "fma")},
    **{"round": "rint", "min": "fmin", "max": "fmax", "abs": "fabs"},
}
FLOAT_BUILTINS = ("exp", "exp2", "exp10", "log", "log2", "log10")
DOUBLE_EXPANDED = FLOAT_BUILTINS
EXPANDED = ("sin", "cos", "tan", "tanh", "erf", "pow", "rsqrt", "sigmoid", "truncmod", "truncdiv")

FLOAT = {
    "ieee_add.float": "tile_add_rounded",
    "ieee_sub.float": "tile_sub_rounded",
    "ieee_mul.float": "tile_mul_rounded",
    "ieee_div.float": "tile_div_rounded",
    "ieee_sqrt.float": "__builtin_sqrtf",
    "ieee_rcp.float": "tile_rcp_rounded",
    "ieee_rsqrt.float": "tile_rsqrt_rounded",
    "__exp.float": "tile_fast_exp",
    "__exp2.float": "exp2_fast",
    "__exp10.float": "tile_fast_exp10",
    "__log.float": "tile_fast_log",
    "__log2.float": "log2_fast",
    "__log10.float": "tile_fast_log10",
    "__sin.float": "tile_fast_sin",
    "__cos.float": "tile_fast_cos",
    "__tan.float": "tile_fast_tan",
    "__rcp.float": "rcp_fast",
}


def _functions() -> dict[str, str]:
    out = {**PLAIN.functions, **FLOAT}
    for name, builtin in BUILTINS.items():
        out[f"{name}.float"], out[f"{name}.double"] = f"__builtin_{builtin}f", f"__builtin_{builtin}"
    out |= {f"{name}.float": f"__builtin_{name}f" for name in FLOAT_BUILTINS}
    out |= {f"{name}.double": f"tile_{name}" for name in DOUBLE_EXPANDED}
    return out | {f"{name}.{kind}": f"tile_{name}" for name in EXPANDED for kind in ("float", "double")}


def _barrier(number: str, threads: int) -> str:
    whole_block(number, threads)  # no part of a block meets
    return "block_sync();"


def _address(pointer: str) -> str:
    return f"shared_address({pointer})"


RESERVED = frozenset(["expf", "fabs", "fabsf", "trunc", "truncf", "floorf", "fmax", "fmaxf", "fmin", "fminf"])

HIP = replace(
    PLAIN,
    types={**PLAIN.types, **FNUZ},
    functions=_functions(),
    to_float={name: f"{name}_to_float" for name in NARROW},
    from_float={name: f"float_to_{name}" for name in NARROW},
    barrier=_barrier,
    address=_address,
    unroll="#pragma unroll",
    fence="fence_device();",
    reserved=PLAIN.reserved | RESERVED | PRELUDE_NAMES | frozenset(table()),
)
