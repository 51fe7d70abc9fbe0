"""All named device helpers: a name in, its helper out; and the text of a prelude for the helpers that a kernel uses."""

from __future__ import annotations

import re
from functools import lru_cache

from . import matrix, memory, moves, scalars
from .device_function import Helper

FAMILIES = (scalars, moves, memory, matrix)
IDENTIFIER = re.compile(r"[A-Za-z_]\w*")

HEAD = """\
#define __global__ __attribute__((global))
#define __launch_bounds__(threads) __attribute__((amdgpu_flat_work_group_size(threads, threads)))
#define TILE_DEVICE static __attribute__((device)) inline __attribute__((always_inline))
#define TILE_STATIC static
#define TILE_GLOBAL __attribute__((address_space(1)))
#define TILE_SHARED __attribute__((address_space(3)))
#define TILE_ARENA(bytes) __attribute__((shared)) __attribute__((aligned(1024))) unsigned char arena[bytes]
#define TILE_BLOCK(axis) __builtin_amdgcn_workgroup_id_##axis()
#define TILE_THREAD __builtin_amdgcn_workitem_id_x()
typedef unsigned char u8; typedef unsigned short u16; typedef unsigned int u32; typedef unsigned long long u64;
typedef u32 u32x2 __attribute__((ext_vector_type(2))); typedef u32 u32x4 __attribute__((ext_vector_type(4)));
typedef int i32x2 __attribute__((ext_vector_type(2))); typedef int i32x4 __attribute__((ext_vector_type(4)));
typedef int i32x8 __attribute__((ext_vector_type(8))); typedef int i32x16 __attribute__((ext_vector_type(16)));
typedef float f32x2 __attribute__((ext_vector_type(2))); typedef float f32x4 __attribute__((ext_vector_type(4)));
typedef float f32x8 __attribute__((ext_vector_type(8))); typedef float f32x16 __attribute__((ext_vector_type(16)));
typedef _Float16 f16x2 __attribute__((ext_vector_type(2))); typedef _Float16 f16x4 __attribute__((ext_vector_type(4)));
typedef _Float16 f16x8 __attribute__((ext_vector_type(8))); typedef _Float16 f16x16 __attribute__((ext_vector_type(16)));
typedef short i16x2 __attribute__((ext_vector_type(2))); typedef short i16x4 __attribute__((ext_vector_type(4)));
typedef short i16x8 __attribute__((ext_vector_type(8))); typedef short i16x16 __attribute__((ext_vector_type(16)));
typedef __bf16 b16x8 __attribute__((ext_vector_type(8)));
__attribute__((device)) static const u32 zero_words[4] = {0, 0, 0, 0};
"""
PRELUDE_NAMES = frozenset(
    (
        "u8",
        "u16",
        "u32",
        "u64",
        "zero_words",
        *(t for t in IDENTIFIER.findall(HEAD) if re.search(r"x\d+$", t)),
    )
)

# stands between the prelude and the kernel in a source
MARK = "// ---- kernel\n"


@lru_cache(maxsize=1)
def table() -> dict[str, Helper]:
    """Every helper by name, in the order in which preludes print them. What a helper needs stands before it."""
    rows = [h for family in FAMILIES for h in family.helpers()]
    found = {h.name: h for h in rows}
    if len(found) != len(rows):
        raise ValueError("two helpers have one name")
    return found


def used(text: str) -> tuple[Helper, ...]:
    """Helpers that the text of a kernel names, with what their bodies need, in printing order."""
    wanted: set[str] = set()
    queue = list(dict.fromkeys(IDENTIFIER.findall(text)))
    while queue:
        name = queue.pop()
        helper = table().get(name) if name not in wanted else None
        if helper is not None:
            wanted.add(name)
            queue += helper.needs
    return tuple(h for name, h in table().items() if name in wanted)


def complete(kernel: str) -> str:
    """The HIP source of a kernel's text: the prelude that it needs, a mark, the text. No include."""
    return HEAD + "".join(h.device_text() for h in used(kernel)) + MARK + kernel


def host_prelude(text: str) -> str:
    """The same names for the machine emulator."""
    return '#include "hip_host.h"\n' + "".join(h.host_text() for h in used(text))
