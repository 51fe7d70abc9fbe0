"""Whether a device holds simdgroup matrices as the atom table says: a kernel to run, and what it must answer.

Apple does not document which lane has which element, and generated products rely on it (see ``codegen.matrix_unit``).
"""

from __future__ import annotations

from collections.abc import Sequence

from tile_core.errors import BackendError
from tile_core.layout.layout import Axis

from ..atoms import SIMDGROUP_8X8

THREADS = 64
ROW = 3  # numbers of a thread: its two elements, its lane
ENTRY = "tile_order"
TEXT = f"""#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;

[[kernel, max_total_threads_per_threadgroup({THREADS})]]
void {ENTRY}(
    device int* out [[buffer(0)]],
    uint tile_thread [[thread_index_in_threadgroup]],
    uint tile_lane [[thread_index_in_simdgroup]]) {{
  alignas(16) threadgroup float numbers[{THREADS}];
  numbers[tile_thread] = float(tile_thread);
  metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
  metal::simdgroup_matrix<float, 8, 8> all;
  metal::simdgroup_load(all, numbers, 8);
  out[tile_thread * {ROW}] = int(all.thread_elements()[0]);
  out[tile_thread * {ROW} + 1] = int(all.thread_elements()[1]);
  out[tile_thread * {ROW} + 2] = int(tile_lane);
}}
"""


def expected() -> list[int]:
    """What each thread answers where the atom table is right, and threads are dealt to simdgroups in order."""
    out = [0] * (THREADS * ROW)
    for row in range(8):
        for column in range(8):
            at = SIMDGROUP_8X8.place((row, column))
            lane, register = at.get(Axis.THREAD, 0), at.get(Axis.REGISTER, 0)
            for first in range(0, THREADS, 32):
                out[(first + lane) * ROW + register] = row * 8 + column
    for thread in range(THREADS):
        out[thread * ROW + 2] = thread % 32
    return out


def compare(answer: Sequence[int], device: str) -> None:
    """Raise ``BackendError`` if a device answered otherwise."""
    if list(answer) != expected():
        raise BackendError(
            f"{device} holds the elements of simdgroup matrices in another order than tile relies on",
            why="Apple does not document the order; generated matrix products would be wrong",
            help="please report it with the chip's name; kernels without T.gemm work",
        )
