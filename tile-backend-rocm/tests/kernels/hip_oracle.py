"""A case under the emulator against the interpreter."""

from __future__ import annotations

from collections.abc import Sequence

from hip_products import BACKEND, info_of

from tile_core import interpreter
from tile_core.testing import arguments, stages
from tile_core.testing.kernels import Case

MODES = ("late", "early", "random")


def passes(case: Case, arch: str, modes: Sequence[str] = ("late", "random")) -> str:
    """Raises ``AssertionError`` where a result or an access is wrong. The source that ran."""
    info = info_of(arch)
    made = arguments.made(case)
    wanted = arguments.copies(made)
    interpreter.run(case.program, wanted)
    source = stages.emit(case, BACKEND, info)
    for mode in modes:
        got = arguments.copies(made)
        for report in BACKEND.emulator(info).run(source, got, case.dims, mode=mode):
            assert report.clean, str(report)
        arguments.compare(case, got, wanted)
    return source.text
