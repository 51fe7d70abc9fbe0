"""Helpers of the matrix instructions, one for each atom: MFMA of CDNA and WMMA of RDNA.

An atom may be several instructions along k (``atoms.py``); a lane's operands of them follow each other in its registers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ..atoms import ALL
from .device_function import Helper

MFMA = "MI200, MI300 and CDNA4 ISA, matrix arithmetic instructions"
WMMA = "RDNA3 and RDNA4 ISA, wave matrix multiply accumulate"
NAME = re.compile(
    r"(?P<form>[a-z]+)(?P<generation>\d?)\.(?P<shape>[\dx]+)\.(?P<c>\w+)\.(?P<kinds>\w+?)(\.x(?P<times>\d+))?$"
)

# a lane's operand of one instruction: (kind of the elements, how many) -> type of the builtin's argument
REGISTERS = {
    ("f16", 4): "f16x4",
    ("f16", 8): "f16x8",
    ("f16", 16): "f16x16",
    ("bf16", 4): "i16x4",
    ("bf16", 8): "b16x8",
    ("bf16", 16): "i16x16",
    ("f32", 1): "float",
    ("xf32", 2): "f32x2",
    ("i8", 4): "int",
    ("i8", 8): "long",
    ("i8", 16): "i32x4",
    ("fp8", 8): "long",
    ("bf8", 8): "long",
}
# elements on the emulated machine
MEANING = {
    "f16": "F16",
    "bf16": "BF16",
    "f32": "F32",
    "xf32": "XF32",
    "i8": "S8",
    "fp8": "FP8",
    "bf8": "BF8",
    "fp8z": "FP8Z",
    "bf8z": "BF8Z",
}
# how clang writes the kinds behind the shape, where it is not "_kind"
SPELLED = {("f16", 4): "f16", ("bf16", 4): "bf16_1k", ("f32", 1): "f32", ("i8", 4): "i8"}


@dataclass(frozen=True, slots=True)
class Instruction:
    """What an atom's name says of its instructions. ``per``: elements of k that a lane gives to one of them."""

    form: str
    generation: int
    shape: tuple[int, int, int]
    c: str
    a: str
    b: str
    times: int

    @staticmethod
    def of(name: str) -> Instruction:
        m = NAME.match(name)
        if m is None:
            raise ValueError(f"no instruction has the name {name}")
        a, _, b = m["kinds"].partition("_")
        side, _, k = (int(n) for n in m["shape"].split("x"))
        times = int(m["times"] or 1)
        return Instruction(m["form"], int(m["generation"] or 0), (side, side, k), m["c"], a, b or a, times)

    @property
    def per(self) -> int:
        side, _, k = self.shape
        return 16 if self.generation == 3 else k * side // (32 if self.generation else 64)

    @property
    def count(self) -> int:
        """A lane's sums."""
        side = self.shape[0]
        return side * side // (32 if self.generation else 64)

    @property
    def total(self) -> str:
        """The type of the instruction's sums; those of 16 bits are converted."""
        return "f32" if self.c == "f16" else self.c

    def register(self, kind: str) -> str:
        plain = kind.removesuffix("z")
        if self.generation == 4:
            # https://clang.llvm.org: vectors of 8 halves, of 8 shorts for bf16, two words for bytes
            return {"f16": "f16x8", "bf16": "i16x8"}.get(plain, "i32x2")
        return REGISTERS[plain, self.per]

    @property
    def builtin(self) -> str:
        side, _, k = self.shape
        size = f"{side}x{side}x{k}"
        a, b = (x.removesuffix("z") for x in (self.a, self.b))
        if self.generation:
            kinds = "iu8" if a == "i8" else f"{a}_{b}" if a in ("fp8", "bf8") else a
            return f"wmma_{self.total}_{size}_{kinds}_w32{'_gfx12' if self.generation == 4 else ''}"
        kinds = f"_{a}_{b}" if a in ("fp8", "bf8") else SPELLED.get((a, self.per), f"_{a}")
        return f"mfma_{self.total}_{size}{kinds}"


def helper_name(atom: str) -> str:
    """The name of the helper of an atom."""
    return atom.replace(".", "_")


def _call(i: Instruction, t: int) -> str:
    a, b = (f"reinterpret_cast<const {i.register(x)}*>({p})[{t}]" for p, x in (("a", i.a), ("b", i.b)))
    if i.generation and i.a == "i8":
        return f"__builtin_amdgcn_{i.builtin}(true, {a}, true, {b}, s, false)"
    if i.generation:
        return f"__builtin_amdgcn_{i.builtin}({a}, {b}, s)"
    return f"__builtin_amdgcn_{i.builtin}({a}, {b}, s, 0, 0, 0)"


def _helper(atom: str) -> Helper:
    i = Instruction.of(atom)
    side, _, k = i.shape
    steps = " ".join(f"s = {_call(i, t)};" for t in range(i.times))
    held, sums = f"{i.c}x{i.count}", f"{i.total}x{i.count}"
    device = (
        f"{sums} s = __builtin_convertvector(*reinterpret_cast<{held}*>(c), {sums}); {steps} "
        f"*reinterpret_cast<{held}*>(c) = __builtin_convertvector(s, {held});"
    )
    size = {"f16": 2, "bf16": 2, "f32": 4, "xf32": 4}.get(i.a, 1) * i.per
    narrow = i.c != i.total
    steps = " ".join(
        f"hip::{i.form}({i.generation}, {side}, {k}, hip::{MEANING[i.a]}, hip::{MEANING[i.b]}, "
        f"{'s' if narrow else 'c'}, (const char*)a + {t * size}, (const char*)b + {t * size});"
        for t in range(i.times)
    )
    host = f"float s[{i.count}]; hip::widened(s, c, {i.count}); {steps} hip::narrowed(c, s, {i.count});"
    host = host if narrow else steps
    isa = WMMA if i.generation else MFMA
    return Helper(helper_name(atom), "void", "void* c, const void* a, const void* b", device, isa, host)


def helpers() -> Iterator[Helper]:
    for atom in ALL:
        yield _helper(atom.name)
