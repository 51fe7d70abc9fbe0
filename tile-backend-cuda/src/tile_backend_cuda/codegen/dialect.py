"""How CUDA C++ spells scalar types, functions and atomics, for sources without any include."""

from __future__ import annotations

from collections.abc import Sequence

from tile_core.dtypes import DType
from tile_core.errors import Unsupported
from tile_core.lowering.printer import Dialect

from ..prelude.table import PRELUDE_TYPES, table

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
}

NARROW = ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")

# Functions of CUDA's mathematics library that NVRTC knows without any header: the name on float, on double.
MATHEMATICS = (
    *("exp", "exp2", "exp10", "log", "log2", "log10", "sqrt", "rsqrt", "sin", "cos", "tan", "tanh", "erf"),
    *("floor", "ceil", "rint", "trunc", "fma", "pow", "fmin", "fmax", "fabs", "fmod"),
)

RENAMED = {"rint": "round", "fmin": "min", "fmax": "max", "fabs": "abs", "fmod": "truncmod"}

FLOAT = {
    "sigmoid.float": "tile_sigmoid",
    "sigmoid.double": "tile_sigmoid",
    "isnan.float": "tile_isnan",
    "isinf.float": "tile_isinf",
    "isfinite.float": "tile_isfinite",
    "isnan.double": "tile_isnan",
    "isinf.double": "tile_isinf",
    "isfinite.double": "tile_isfinite",
    "truncdiv.float": "tile_truncdiv",
    "truncdiv.double": "tile_truncdiv",
    "floordiv.float": "tile_float_floordiv",
    "floordiv.double": "tile_float_floordiv",
    "floormod.float": "tile_float_floormod",
    "floormod.double": "tile_float_floormod",
    "ieee_add.float": "__fadd_rn",
    "ieee_sub.float": "__fsub_rn",
    "ieee_mul.float": "__fmul_rn",
    "ieee_div.float": "__fdiv_rn",
    "ieee_sqrt.float": "__fsqrt_rn",
    "ieee_rcp.float": "__frcp_rn",
    "ieee_rsqrt.float": "__frsqrt_rn",
    "__exp.float": "__expf",
    "__exp2.float": "exp2f",
    "__exp10.float": "__exp10f",
    "__log.float": "__logf",
    "__log2.float": "__log2f",
    "__log10.float": "__log10f",
    "__sin.float": "__sinf",
    "__cos.float": "__cosf",
    "__tan.float": "__tanf",
    "__rcp.float": "tile_fast_rcp",
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
    for name in MATHEMATICS:
        meaning = RENAMED.get(name, name)
        out[f"{meaning}.float"] = f"{name}f"
        out[f"{meaning}.double"] = name
    for name, spelled in INTEGER.items():
        out[f"{name}.int"] = out[f"{name}.uint"] = spelled
    return out


def _atomic(op: str, t: DType) -> str:
    """Functions of the prelude; they take an address and a value and give the value before."""
    if t.bits < 16 or t.name not in TYPES:
        raise Unsupported(f"no atomic {op} of {t} on this target", help="use 32-bit values")
    return f"tile_atomic_{op}"


def _failed(message: str) -> str:
    text = message.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'{{ printf("assertion failed: {text}\\n"); __trap(); }}'


def _barrier(number: str, threads: int) -> str:
    return f"named_sync({number}, {threads});" if threads else "__syncthreads();"


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


RESERVED = (
    "alignas asm auto bool break case char class const continue default delete do double else enum "
    "explicit extern false float for friend goto if inline int long main namespace new operator "
    "private protected public register return short signed sizeof static struct switch template this "
    "throw true try typedef typename union unsigned using virtual void volatile while half_t "
    "bfloat_t arena thread threadIdx blockIdx blockDim gridDim warpSize printf exp log sin cos tan "
    "pow sqrt floor ceil round min max abs"
)

CUDA = Dialect(
    types=TYPES,
    functions=_functions(),
    to_float={name: f"{name}_to_float" for name in NARROW},
    from_float={name: f"float_to_{name}" for name in NARROW},
    atomics=_atomic,
    barrier=_barrier,
    address=lambda pointer: f"shared_address({pointer})",
    unroll="#pragma unroll",
    fence="fence_gpu();",
    bitcast="tile_bitcast",
    failed=_failed,
    printed=_printed,
    reserved=(frozenset(RESERVED.split()) - {"thread"}) | PRELUDE_TYPES | frozenset(table()),
)
