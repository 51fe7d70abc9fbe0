"""Choices that the user left open: takes a program and the facts of a target, gives numbers to compile with."""

from __future__ import annotations

from ..hardware import TargetInfo
from ..program import TileProgram

USUAL = 128  # four warps of 32 or two of 64: every matrix instruction has whole groups of threads


def threads(program: TileProgram, info: TargetInfo) -> int:
    """Threads of a block where the kernel does not say: 128 or as many as the target has, 1 if it is not SIMT.

    If another launch of the program gives a number, that one is taken, so that all blocks are alike.
    """
    if not info.simt:
        return 1
    given = [launch.thread_count for launch in program.launches if launch.threads_given]
    return min(given[0] if given else USUAL, info.max_threads)
