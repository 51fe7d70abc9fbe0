"""The facts of each processor family: memory, vector width, rates."""

from __future__ import annotations

import os

from ..dtypes import ALL
from ..hardware import Engine, MemorySpace, Target, TargetInfo
from .machine import PORTABLE, Machine, host

CLOCK = 3.0e9
BANDWIDTH = 20e9  # bytes per second from memory, for one socket
MULTIPLY_ADDS = 2  # vector instructions per cycle at 256 bits, one at 512 on most cores
TYPES = frozenset(name for name, type in ALL.items() if type.kind != "handle")


def info(machine: Machine, cores: int) -> TargetInfo:
    """Facts about ``machine``. A tile lives in its block's scratch memory, which should stay within the L2 cache."""
    lanes = machine.vector_bytes // 4
    rate = min(lanes, 8) * MULTIPLY_ADDS * 2 * CLOCK * cores
    return TargetInfo(
        target=Target("cpu", machine.arch),
        spaces=(
            MemorySpace("global", 1 << 46, 64, "grid"),
            MemorySpace("shared", machine.l2, 64, "block"),
            MemorySpace("register", machine.l2, 64, "block"),
        ),
        engines=(Engine("core", "synchronous", "block"),),
        tokens=(),
        subgroup=1,
        max_threads=1,
        dtypes=TYPES,
        atoms=(),
        peaks={"float32": rate, "float64": rate / 2, "float16": rate, "bfloat16": rate, "global": BANDWIDTH},
        cores=cores,
        clock=CLOCK,
        registers=machine.registers * lanes,
        panel_spans=(machine.vector_bytes,),
        features=machine.features,
        sources=("x86-64 psABI, section 3.1.1 Processor Architecture", "llvm host detection"),
        estimated=("peaks", "clock"),
    )


def targets() -> tuple[TargetInfo, ...]:
    """The host first, then the portable levels."""
    return (info(host(), os.cpu_count() or 1), *(info(m, 4) for m in PORTABLE.values()))
