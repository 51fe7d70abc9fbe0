"""What ptxas says of a compilation, read: figures of each kernel, and findings about what costs speed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from tile_core.backend import Finding

COMPILING = re.compile(r"Compiling entry function '([^']+)'")
PROPERTIES = re.compile(r"Function properties for (\S+)")
FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers")
BARRIERS = re.compile(r"used (\d+) barriers")
SHARED = re.compile(r"(\d+) bytes smem")
# C7500 and on: wgmma serialised, setmaxnreg ignored and the like
LOSS = re.compile(r"\((C75\d\d)\) (.+)")
WARNING = re.compile(r"ptxas warning\s*: (.+)")

REMEDIES = {
    "C7504": "setmaxnreg has no effect: give the kernel its launch bounds, and compile by NVRTC or ptxas",
    "C7515": "clear accumulators by volatile moves or by the first wgmma's scale, not by assignments",
    "C7519": "compile with full optimisation",
}


@dataclass
class Function:
    """Figures of one function in bytes and registers; ``entry``: a kernel, not a function that one calls."""

    name: str
    entry: bool = False
    figures: dict[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True)
class Report:
    """Functions in the order of the log, and findings."""

    functions: tuple[Function, ...]
    findings: tuple[Finding, ...]

    @property
    def entries(self) -> Mapping[str, Mapping[str, int]]:
        """Figures by kernel."""
        return {f.name: f.figures for f in self.functions if f.entry}

    @property
    def resources(self) -> dict[str, int]:
        """The largest figure of all kernels by name; where there are several kernels, also ``kernel.name`` of each."""
        out: dict[str, int] = {}
        for name, figures in self.entries.items():
            for what, n in figures.items():
                out[what] = max(out.get(what, 0), n)
                if len(self.entries) > 1:
                    out[f"{name}.{what}"] = n
        return out


def read(log: str) -> Report:
    """Read the log of ``ptxas -v``, from NVRTC or nvcc."""
    functions: dict[str, Function] = {}
    findings: list[Finding] = []
    entry = at = Function("")
    for line in log.splitlines():
        if m := COMPILING.search(line):
            entry = at = functions.setdefault(m[1], Function(m[1]))
            entry.entry = True
        elif m := PROPERTIES.search(line):
            at = functions.setdefault(m[1], Function(m[1]))
        elif m := FRAME.search(line):
            at.figures |= {"stack": int(m[1]), "spill_stores": int(m[2]), "spill_loads": int(m[3])}
        elif m := USED.search(line):
            entry.figures["registers"] = int(m[1])
            for what, pattern in (("barriers", BARRIERS), ("shared", SHARED)):
                found = pattern.search(line)
                entry.figures[what] = int(found[1]) if found else 0
        elif m := LOSS.search(line):
            findings.append(Finding("warning", f"{m[1]}: {m[2]}", REMEDIES.get(m[1], "")))
        elif m := WARNING.search(line):
            findings.append(Finding("warning", m[1]))
    found = tuple(functions.values())
    return Report(found, (*findings, *(f for one in found for f in _memory(one))))


def _memory(function: Function) -> tuple[Finding, ...]:
    """Registers that were spilled, or arrays that are not in registers."""
    figures = function.figures
    spilled = figures.get("spill_stores", 0) + figures.get("spill_loads", 0)
    if spilled:
        message = f"{function.name} spills registers: {figures['spill_stores']} bytes written, {figures['spill_loads']} read"
        return (Finding("warning", message, "use smaller tiles, or more threads for each"),)
    if figures.get("stack", 0):
        message = f"{function.name} keeps {figures['stack']} bytes for each thread in memory"
        return (Finding("warning", message, "an array is indexed by a value known at run time only"),)
    return ()
