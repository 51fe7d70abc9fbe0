"""Moves of every width between every two address spaces, as emulated source; and what is wrong with a bad address."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from tile_backend_metal.codegen.emit import head
from tile_backend_metal.codegen.moves import WORDS
from tile_backend_metal.compiler.lint import faults
from tile_backend_metal.emulator import run

pytestmark = pytest.mark.usefixtures("emulator")

THREADS = 32
STEPS = tuple((size, first) for size, first in product(WORDS, (True, False)))


def source(shift: int = 0) -> str:
    """Each thread moves bytes device -> threadgroup -> thread -> threadgroup -> device -> device, or zeros where it is odd."""
    lines = []
    for n, (size, whole) in enumerate(STEPS):
        at = f"{n * 16 * THREADS} + tile_thread * 16 + {shift}"
        kind, more = ("move", "") if whole else ("fetch", ", tile_thread % 2 == 0")
        lines += [
            "{",
            "  alignas(16) uchar own[16];",
            f"  tile_{kind}{size}_threadgroup_from_device(&near[{at}], &A[{at}]{more});",
            f"  tile_{kind}{size}_thread_from_threadgroup(&own[0], &near[{at}]{more});",
            f"  tile_move{size}_threadgroup_from_thread(&near[{at}], &own[0]);",
            f"  tile_move{size}_device_from_threadgroup(&B[{at}], &near[{at}]);",
            f"  tile_{kind}{size}_device_from_device(&B[{at}], &B[{at}]{more});",
            f"  tile_{kind}{size}_thread_from_device(&own[0], &B[{at}]{more});",
            f"  tile_move{size}_device_from_thread(&B[{at}], &own[0]);",
            "}",
        ]
    body = "\n  ".join(lines)
    kernel = f"""[[kernel, max_total_threads_per_threadgroup({THREADS})]]
void main_0(
    device uchar* A [[buffer(0)]],
    device uchar* B [[buffer(1)]],
    uint tile_thread [[thread_index_in_threadgroup]]) {{
  alignas(16) threadgroup uchar tile_arena[{16 * THREADS * len(STEPS)}];
  threadgroup uchar* const near = reinterpret_cast<threadgroup uchar*>(tile_arena + 0);
  {body}
}}
"""
    return head(kernel) + kernel


def launched(text: str):
    a = np.random.default_rng(0).integers(1, 255, 16 * THREADS * len(STEPS), np.uint8)
    b = np.zeros_like(a)
    report = run(text, "main_0", [a, b], grid=1, threads=THREADS, shared_bytes=a.size)
    return a, b, report


def test_bytes_arrive() -> None:
    text = source()
    assert faults(text, "3.0") == ()
    a, b, report = launched(text)
    assert report.clean, str(report)
    wanted = np.zeros_like(a).reshape(len(STEPS), THREADS, 16)
    given = a.reshape(wanted.shape)
    for n, (size, whole) in enumerate(STEPS):
        threads = slice(None) if whole else slice(0, None, 2)
        wanted[n, threads, :size] = given[n, threads, :size]
    np.testing.assert_array_equal(b.reshape(wanted.shape), wanted)


def test_an_address_that_no_vector_has() -> None:
    *_, report = launched(source(shift=1))
    assert "misaligned" in report.codes
