"""How HIP C++ spells scalar types, functions and atomics, for sources without any include."""

from __future__ import annotations

from collections.abc import Sequence

from tile_core.dtypes import DType
from tile_core.errors import Unsupported
from tile_core.lowering.printer import Dialect

from ..prelude.table import PRELUDE_NAMES, table

TYPES = {
    "bool": "bool",
    "int8": "signed char",
    "int16": "short",
    "int32": "int",
    "int64": "long long",
    "uint8": "unsigned char",
    "uint16": "unsigned short",
    "uint32": "unsigned int",
    "uint64": "unsigned long long",
    "float16": "half_t",
    "bfloat16": "bfloat_t",
    "float32": "float",
    "tfloat32": "float",
    "float64": "double",
    "float8_e4m3fn": "fp8_e4m3_t",
    "float8_e5m2": "fp8_e5m2_t",
    "float8_e4m3fnuz": "fp8_e4m3_fnuz_t",
    "float8_e5m2fnuz": "fp8_e5m2_fnuz_t",
}

NARROW = tuple(name for name in TYPES if name.startswith("float8") or name in ("float16", "bfloat16"))

# clang makes instructions of these without any library: the builtin's name on double, on float with an f behind
BUILTINS = {
    **{name: name for name in ("sqrt", "floor", "ceil", "trunc", "fma")},
    **{"round": "rint", "min": "fmin", "max": "fmax", "abs": "fabs"},
}
FLOAT_BUILTINS = ("exp", "exp2", "exp10", "log", "log2", "log10")
DOUBLE_EXPANDED = FLOAT_BUILTINS
EXPANDED = ("sin", "cos", "tan", "tanh", "erf", "pow", "rsqrt", "sigmoid", "truncmod", "truncdiv")
TESTS = ("isnan", "isinf", "isfinite")

FLOAT = {
    "floordiv.float": "tile_float_floordiv",
    "floordiv.double": "tile_float_floordiv",
    "floormod.float": "tile_float_floormod",
    "floormod.double": "tile_float_floormod",
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

INTEGER = {
    "floordiv": "tile_floordiv",
    "floormod": "tile_floormod",
    "min": "tile_min",
    "max": "tile_max",
    "abs": "tile_abs",
    "pow": "tile_power",
    "popcount": "tile_popcount",
    "clz": "tile_clz",
}


def _functions() -> dict[str, str]:
    out = dict(FLOAT)
    for name, builtin in BUILTINS.items():
        out[f"{name}.float"], out[f"{name}.double"] = f"__builtin_{builtin}f", f"__builtin_{builtin}"
    out |= {f"{name}.float": f"__builtin_{name}f" for name in FLOAT_BUILTINS}
    out |= {f"{name}.double": f"tile_{name}" for name in DOUBLE_EXPANDED}
    out |= {f"{name}.{kind}": f"tile_{name}" for name in (*EXPANDED, *TESTS) for kind in ("float", "double")}
    for name, spelled in INTEGER.items():
        out[f"{name}.int"] = out[f"{name}.uint"] = spelled
    return out


def _atomic(op: str, t: DType) -> str:
    """Functions of the base text; they take an address and a value and give the value before."""
    if t.bits < 16 or t.name not in TYPES:
        raise Unsupported(f"no atomic {op} of {t} on this target", help="use 32-bit values")
    return f"tile_atomic_{op}"


def _barrier(number: str, threads: int) -> str:
    if threads:
        raise Unsupported("no barrier of a part of the block on this target", help="let all threads meet")
    return "block_sync();"


def _printed(message: str, values: Sequence[tuple[str, DType]]) -> str:
    raise Unsupported(
        f"print({message!r}) inside a kernel: the compiled code has no library that prints",
        help="set TILE_INTERPRET=1, or store the value to a tensor",
    )


RESERVED = (
    "alignas asm auto bool break case char class const continue default delete do double else enum "
    "explicit extern false float for friend goto if inline int long main namespace new operator "
    "private protected public register return short signed sizeof static struct switch template this "
    "throw true try typedef typename union unsigned using virtual void volatile while half_t "
    "bfloat_t arena exp expf fabs fabsf trunc truncf floor floorf fmax fmaxf fmin fminf "
    "log sin cos tan pow sqrt ceil round min max abs"
)

HIP = Dialect(
    types=TYPES,
    functions=_functions(),
    to_float={name: f"{name}_to_float" for name in NARROW},
    from_float={name: f"float_to_{name}" for name in NARROW},
    atomics=_atomic,
    barrier=_barrier,
    address=lambda pointer: f"shared_address({pointer})",
    unroll="#pragma unroll",
    fence="fence_device();",
    bitcast="tile_bitcast",
    failed=lambda message: "tile_trap();",
    printed=_printed,
    reserved=frozenset(RESERVED.split()) | PRELUDE_NAMES | frozenset(table()),
)
