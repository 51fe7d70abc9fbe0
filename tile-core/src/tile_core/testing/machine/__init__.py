"""The machine emulator: a generated kernel's own source in, compiled for this computer and run thread by thread; findings out.

A vendor's package gives the meaning of its instructions (``Prelude``); everything else here is of no vendor. Needs a C++
compiler. ``run`` is the interface, ``run_source`` the same for all launches of a generated source::

    report = machine.run(
        text, prelude, "kernel", [a, b, c], grid=(4, 1, 1), threads=128, shared_bytes=4096, mode="late"
    )
    assert not report.findings, report
"""

from __future__ import annotations

from .compiler import MachineError, compiler_or_none
from .launch import MODES, Arguments, Packed, Prelude, run
from .launches import run_source
from .report import CODES, Finding, Report

__all__ = [
    "CODES",
    "MODES",
    "Arguments",
    "Finding",
    "MachineError",
    "Packed",
    "Prelude",
    "Report",
    "compiler_or_none",
    "run",
    "run_source",
]
