"""How C++ spells scalar types and functions: the part of a ``Dialect`` that vendors whose kernels are C++ have in common.

``PLAIN`` is whole: it calls the functions of ``cplusplus`` and of the C library by their names, and for what hardware does,
functions that a vendor's text defines: ``tile_sync``, ``tile_fence``, ``tile_trap``, ``tile_shared_address`` and
``tile_ieee_*``. A vendor replaces what its language says otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..dtypes import DType
from ..errors import Unsupported
from .printer import Dialect

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

# Functions of the C library: the name on double, and with an f behind it on float.
MATHEMATICS = (
    *("exp", "exp2", "exp10", "log", "log2", "log10", "sqrt", "rsqrt", "sin", "cos", "tan", "tanh", "erf"),
    *("floor", "ceil", "rint", "trunc", "fma", "pow", "fmin", "fmax", "fabs", "fmod"),
)
RENAMED = {"rint": "round", "fmin": "min", "fmax": "max", "fabs": "abs", "fmod": "truncmod"}

# Functions of `cplusplus`, by what they compute.
OWN = ("sigmoid", "isnan", "isinf", "isfinite", "truncdiv")
DIVISIONS = {"floordiv": "tile_float_floordiv", "floormod": "tile_float_floormod"}
ROUNDED = ("add", "sub", "mul", "div", "sqrt", "rcp", "rsqrt")
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
FAST = ("exp", "exp2", "exp10", "log", "log2", "log10", "sin", "cos", "tan")

# Keywords of C++, and names of the C library that a kernel's own must not hide.
RESERVED = """
    alignas asm auto bool break case char class const continue default delete do double else enum explicit extern false float for
    friend goto if inline int long main namespace new operator private protected public register return short signed sizeof static
    struct switch template this throw true try typedef typename union unsigned using virtual void volatile while half_t bfloat_t
    arena printf exp log sin cos tan pow sqrt floor ceil round min max abs
"""


def functions() -> dict[str, str]:
    """``meaning.type`` to the name of a function. Fast variants are the accurate ones."""
    out: dict[str, str] = {}
    for name in MATHEMATICS:
        meaning = RENAMED.get(name, name)
        out[f"{meaning}.float"], out[f"{meaning}.double"] = f"{name}f", name
    own = {**{name: f"tile_{name}" for name in OWN}, **DIVISIONS}
    out |= {f"{name}.{kind}": spelled for name, spelled in own.items() for kind in ("float", "double")}
    out |= {f"{name}.{kind}": spelled for name, spelled in INTEGER.items() for kind in ("int", "uint")}
    out |= {f"ieee_{name}.float": f"tile_ieee_{name}" for name in ROUNDED}
    out |= {f"__{name}.float": f"{name}f" for name in FAST}
    return out | {"__rcp.float": "tile_ieee_rcp"}


def atomic(op: str, t: DType) -> str:
    """Functions of ``ATOMICS``; they take an address and a value and give the value before."""
    if t.bits < 16 or t.name not in TYPES:
        raise Unsupported(f"no atomic {op} of {t} on this target", help="use 32-bit values")
    return f"tile_atomic_{op}"


def whole_block(number: str, threads: int) -> str:
    """A barrier of all threads; raises ``Unsupported`` for one of a part of them."""
    if threads:
        raise Unsupported("no barrier of a part of the block on this target", help="let all threads meet")
    return "tile_sync();"


def no_print(message: str, values: Sequence[tuple[str, DType]]) -> str:
    """For languages whose kernels have no library that prints: raises ``Unsupported``."""
    raise Unsupported(
        f"print({message!r}) inside a kernel: the compiled code has no library that prints",
        help="set TILE_INTERPRET=1, or store the value to a tensor",
    )


PLAIN = Dialect(
    types=TYPES,
    functions=functions(),
    to_float={name: f"{name}_to_float" for name in NARROW},
    from_float={name: f"float_to_{name}" for name in NARROW},
    atomics=atomic,
    barrier=whole_block,
    address=lambda pointer: f"tile_shared_address({pointer})",
    unroll="#pragma GCC unroll 64",
    fence="tile_fence();",
    bitcast="tile_bitcast",
    failed=lambda message: "tile_trap();",
    printed=no_print,
    reserved=frozenset(RESERVED.split()),
)
