"""What a code object says of its kernels: an ELF file in, registers, LDS, scratch and spills of each kernel out.

LLVM AMDGPU usage, "Code object metadata": a note named AMDGPU of type 32 that holds a MessagePack map.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import Any

from tile_core.backend import Finding
from tile_core.errors import InternalError

NOTE_SECTION, METADATA, OWNER = 7, 32, b"AMDGPU"  # SHT_NOTE of the ELF specification, NT_AMDGPU_METADATA

# our name of a figure -> the metadata's
FIGURES = {
    "vgprs": ".vgpr_count",
    "agprs": ".agpr_count",
    "sgprs": ".sgpr_count",
    "shared": ".group_segment_fixed_size",
    "scratch": ".private_segment_fixed_size",
    "vgpr_spills": ".vgpr_spill_count",
    "sgpr_spills": ".sgpr_spill_count",
}


def kernels(data: bytes) -> dict[str, dict[str, int]]:
    """Figures of each kernel by name. Raises ``InternalError``: this is no code object."""
    try:
        for kind, owner, content in _notes(data):
            if kind == METADATA and owner == OWNER:
                found = Reader(content).value()
                return {k[".name"]: _figures(k) for k in found["amdhsa.kernels"]}
    except (struct.error, KeyError, IndexError, TypeError) as error:
        raise InternalError(f"the metadata of a code object cannot be read: {error}") from error
    raise InternalError("a code object without metadata")


def _figures(kernel: Mapping[str, Any]) -> dict[str, int]:
    return {name: int(kernel.get(key, 0)) for name, key in FIGURES.items()}


def resources(found: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    """The largest figure of all kernels by name; where there are several kernels, also ``kernel.name`` of each."""
    out: dict[str, int] = {}
    for name, figures in found.items():
        for what, n in figures.items():
            out[what] = max(out.get(what, 0), n)
            if len(found) > 1:
                out[f"{name}.{what}"] = n
    return out


def findings(found: Mapping[str, Mapping[str, int]]) -> tuple[Finding, ...]:
    """What costs speed: registers that did not suffice, arrays that stayed in memory."""
    out: list[Finding] = []
    for name, f in found.items():
        if f["vgpr_spills"]:
            out.append(
                Finding(
                    "warning", f"{name} spills {f['vgpr_spills']} registers to memory", "use smaller tiles"
                )
            )
        elif f["scratch"]:
            text = f"{name} keeps {f['scratch']} bytes of each thread in memory"
            out.append(
                Finding("warning", text, "use smaller tiles, so that loops over registers are unrolled")
            )
    return tuple(out)


def _notes(data: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """(type, owner, content) of all notes of a 64-bit little-endian ELF file."""
    if data[:6] != b"\x7fELF\x02\x01":
        raise InternalError("a code object is an ELF file of 64 bits")
    (table,) = struct.unpack_from("<Q", data, 0x28)
    size, count = struct.unpack_from("<HH", data, 0x3A)
    for n in range(count):
        kind, _, _, at, length = struct.unpack_from("<IQQQQ", data, table + n * size + 4)
        end = at + length
        while kind == NOTE_SECTION and at + 12 <= end:
            owner, content, what = struct.unpack_from("<III", data, at)
            name_at = at + 12
            body_at = name_at + (owner + 3) // 4 * 4
            yield what, data[name_at : name_at + owner].rstrip(b"\0"), data[body_at : body_at + content]
            at = body_at + (content + 3) // 4 * 4


# MessagePack specification, "Formats": the first byte -> a value, how a number is packed, or what follows a length
FIXED = {0xC0: None, 0xC2: False, 0xC3: True}
NUMBERS = {0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q", 0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q"}
SIZED = {
    **{0xD9: ("text", ">B"), 0xDA: ("text", ">H"), 0xDB: ("text", ">I")},
    **{0xDC: ("array", ">H"), 0xDD: ("array", ">I"), 0xDE: ("map", ">H"), 0xDF: ("map", ">I")},
}


class Reader:
    """MessagePack, as much of it as LLVM writes: maps, arrays, strings, integers, booleans and nil."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def value(self) -> Any:
        """The next value. Raises ``KeyError``: of a kind that is not known."""
        first = self._number(">B")
        if first < 0x80 or first >= 0xE0:
            return first if first < 0x80 else first - 256
        if first < 0x90:
            return self._many("map", first & 15)
        if first < 0xA0:
            return self._many("array", first & 15)
        if first < 0xC0:
            return self._many("text", first & 31)
        if first in FIXED:
            return FIXED[first]
        if first in NUMBERS:
            return self._number(NUMBERS[first])
        kind, size = SIZED[first]
        return self._many(kind, self._number(size))

    def _number(self, form: str) -> int:
        (out,) = struct.unpack_from(form, self.data, self.at)
        self.at += struct.calcsize(form)
        return out

    def _many(self, kind: str, count: int) -> Any:
        if kind == "map":
            return {self.value(): self.value() for _ in range(count)}
        if kind == "array":
            return [self.value() for _ in range(count)]
        self.at += count
        return self.data[self.at - count : self.at].decode()
