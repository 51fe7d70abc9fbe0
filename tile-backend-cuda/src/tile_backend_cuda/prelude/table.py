"""All named device helpers: a name in, its helper out; and the text of a prelude for the helpers that a kernel uses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from . import barriers, matrix, memory, moves, reductions, scalars, tensor, tensor_memory, warp, warpgroup
from .device_function import Helper

FAMILIES = (scalars, memory, reductions, warp, moves, barriers, matrix, tensor, warpgroup, tensor_memory)
IDENTIFIER = re.compile(r"[A-Za-z_]\w*")

TYPES = """\
typedef unsigned char u8; typedef signed char i8; typedef unsigned short u16; typedef short i16;
typedef unsigned int u32; typedef int i32; typedef unsigned long long u64; typedef long long i64;
struct f16 { u16 bits; }; struct bf16 { u16 bits; }; struct e4m3 { u8 bits; }; struct e5m2 { u8 bits; };
struct alignas(8) u32x2 { u32 x, y; }; struct alignas(16) u32x4 { u32 x, y, z, w; };
struct alignas(64) TensorMap { u64 opaque[16]; };
"""
PRELUDE_TYPES = frozenset(
    [
        "u8",
        "i8",
        "u16",
        "i16",
        "u32",
        "i32",
        "u64",
        "i64",
        "f16",
        "bf16",
        "e4m3",
        "e5m2",
        "u32x2",
        "u32x4",
        "TensorMap",
    ]
)


@lru_cache(maxsize=1)
def table() -> dict[str, Helper]:
    """Every helper but the wgmma instructions, by name, in the order in which preludes print them."""
    rows = [h for family in FAMILIES for h in family.helpers()]
    found = {h.name: h for h in rows}
    if len(found) != len(rows):
        raise ValueError("two helpers have one name")
    return found


def find(name: str) -> Helper | None:
    """The helper of this name, if there is one."""
    return table().get(name) or _instruction(name)


@lru_cache(maxsize=512)
def _instruction(name: str) -> Helper | None:
    return warpgroup.instruction(name) if name.startswith("wgmma_m64n") else None


def names() -> Iterator[str]:
    """Names of all helpers."""
    yield from table()
    yield from warpgroup.names()


def used(text: str) -> tuple[Helper, ...]:
    """Helpers that the text of a kernel names, with what their bodies need, in printing order."""
    wanted: set[str] = set()
    instructions: set[str] = set()
    queue = list(dict.fromkeys(IDENTIFIER.findall(text)))
    while queue:
        name = queue.pop()
        helper = find(name) if name not in wanted and name not in instructions else None
        if helper is not None:
            (wanted if name in table() else instructions).add(name)
            queue += helper.needs
    listed = [h for name, h in table().items() if name in wanted]
    found = [h for name in sorted(instructions, key=_order) if (h := find(name))]
    return (*_after_needs(listed), *found)


def _after_needs(helpers: list[Helper]) -> list[Helper]:
    """The same order, except that what a helper calls stands before it."""
    by_name = {h.name: h for h in helpers}
    out: dict[str, Helper] = {}

    def add(helper: Helper) -> None:
        for name in helper.needs:
            add(by_name[name])
        out[helper.name] = helper

    for helper in helpers:
        if helper.name not in out:
            add(helper)
    return list(out.values())


def _order(name: str) -> tuple[int, str]:
    digits = re.search(r"n(\d+)k", name)
    return (int(digits[1]) if digits else 0, name)


# stands between the prelude and the kernel in a source
MARK = "// ---- kernel\n"


def complete(kernel: str) -> str:
    """The CUDA source of a kernel's text: the prelude that it needs, a mark, the text."""
    return device_prelude(kernel) + MARK + kernel


def device_prelude(text: str) -> str:
    """CUDA C++ that stands before a kernel's text: the types, and the helpers that it uses. No include."""
    return TYPES + "".join(h.device_text() for h in used(text))


def host_prelude(text: str) -> str:
    """The same names for the machine emulator."""
    return '#include "cuda_host.h"\n' + TYPES + "".join(h.host_text() for h in used(text))
