"""A case's source under the emulator, its results against the interpreter's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tile_backend_cuda.prelude.emulate import CudaEmulator
from tile_core import interpreter
from tile_core.backend import Source
from tile_core.testing import arguments
from tile_core.testing.kernels import Case
from tile_core.testing.machine import Report

MODES = ("late", "early", "random")


def reports(case: Case, source: Source, modes: Sequence[str] = MODES) -> Iterator[Report]:
    """What the emulator says of each launch. Raises ``AssertionError`` for a wrong result."""
    made = arguments.made(case)
    wanted = arguments.copies(made)
    interpreter.run(case.program, wanted)
    for mode in modes:
        got = arguments.copies(made)
        yield from CudaEmulator().run(source, got, case.dims, mode=mode)
        arguments.compare(case, got, wanted)


def passes(case: Case, source: Source, modes: Sequence[str] = MODES) -> None:
    """Raises ``AssertionError`` for a wrong result or a report that is not clean."""
    for report in reports(case, source, modes):
        assert report.clean, str(report)
