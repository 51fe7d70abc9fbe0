"""AMD GPUs of this machine, read from the kernel driver's topology files; the HIP runtime, if it loads, names them.

Nothing is initialised for the architecture, so asking is cheap and safe before a fork. A count that HIP gives wins: it
honours HIP_VISIBLE_DEVICES.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from tile_core.hardware import Device, Target

TOPOLOGY = Path("/sys/class/kfd/kfd/topology/nodes")
RUNTIMES = ("libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5")


@dataclass(frozen=True, slots=True)
class Node:
    """A GPU node of the topology: its architecture and the bytes of its memory."""

    arch: str
    memory: int


@lru_cache(maxsize=1)
def devices() -> tuple[Device, ...]:
    """The devices in the driver's order, asked once for each process. () without a driver or a device."""
    found = nodes(TOPOLOGY)
    if not found:
        return ()
    names = _names()
    if names and len(names) < len(found):
        found = found[: len(names)]  # which ones are hidden is not known: right where all are of one kind
    labels = names or [node.arch for node in found]
    return tuple(
        Device(Target("rocm", node.arch), index, label, memory=node.memory, torch=f"cuda:{index}")
        for index, (node, label) in enumerate(zip(found, labels, strict=False))
    )


def nodes(topology: Path) -> list[Node]:
    """GPU nodes below ``topology``; a node without ``gfx_target_version`` is a processor."""
    try:
        folders = sorted(topology.iterdir(), key=lambda p: int(p.name))
        read = [(_properties(folder / "properties"), _memory(folder)) for folder in folders]
    except (OSError, ValueError):
        return []
    return [
        Node(arch_of(p["gfx_target_version"]), memory) for p, memory in read if p.get("gfx_target_version")
    ]


def arch_of(version: int) -> str:
    """``90402`` (major, minor, step of two decimal digits) is gfx942: minor and step are hexadecimal digits."""
    return f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}"


def _properties(file: Path) -> dict[str, int]:
    pairs = (line.split() for line in file.read_text().splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}


def _memory(folder: Path) -> int:
    return sum(_properties(f).get("size_in_bytes", 0) for f in folder.glob("mem_banks/*/properties"))


def _names() -> list[str]:
    """Marketing names from HIP; [] if it does not load."""
    for runtime in RUNTIMES:
        try:
            hip = ctypes.CDLL(runtime)
        except OSError:
            continue
        count = ctypes.c_int()
        if hip.hipInit(0) or hip.hipGetDeviceCount(ctypes.byref(count)):
            return []
        return [_name(hip, index) for index in range(count.value)]
    return []


def _name(hip: ctypes.CDLL, index: int) -> str:
    text = ctypes.create_string_buffer(128)
    hip.hipDeviceGetName(text, len(text), index)
    return text.value.decode(errors="replace")
