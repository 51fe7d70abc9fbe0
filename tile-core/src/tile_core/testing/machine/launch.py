"""Runs a kernel under the emulator: text, meaning of instructions, arguments and grid in; a report out, arrays changed."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from . import request
from .compiler import MachineError, build, digest_of, volatile_apart
from .report import Finding, Report, parse
from .request import Array, Packed

__all__ = ["MODES", "Arguments", "Packed", "Prelude", "run"]

HERE = Path(__file__).parent
MODES = ("early", "late", "random")
Arguments = Sequence[Any]
HOST_FLAGS = ("-O2", "-ftree-vectorize", "-rdynamic")
# the sanitizer makes the compiler announce each access of memory; its own runtime is not linked
KERNEL_FLAGS = ("-O1", "-g1", "-gdwarf-4", "-w", "-fPIC", "-shared", "-nostdlib", "-fsanitize=thread")


@dataclass(frozen=True)
class Prelude:
    """A vendor's meaning of its instructions for the host.

    ``text`` is C++ that stands before the kernel and defines what it calls; ``sources`` are compiled once, into the host
    program; both see ``machine.h`` and the folders of ``include``. ``subgroup``: lanes of a subgroup, 32 or 64.
    """

    text: str
    sources: tuple[Path, ...] = ()
    include: tuple[Path, ...] = ()
    subgroup: int = 32

    def __post_init__(self) -> None:
        if self.subgroup not in (32, 64):
            raise ValueError(f"a subgroup has 32 or 64 lanes, not {self.subgroup}")

    def folders(self) -> tuple[Path, ...]:
        return (HERE / "include", HERE / "src", *self.include)

    def headers(self) -> list[Path]:
        return [f for folder in self.folders() for f in sorted(folder.glob("*.h"))]


def _host(prelude: Prelude) -> Path:
    """The program that runs launches with this prelude's instructions."""
    sources = (*sorted((HERE / "src").glob("*.cpp")), *prelude.sources)
    text = "".join(f'#include "{path}"\n' for path in sources)
    flags = (*HOST_FLAGS, *(f"-I{p}" for p in prelude.folders()))
    name = f"host-{digest_of([*sources, *prelude.headers()], '', HOST_FLAGS)}"
    return build(text, flags, name, "the emulator")


def _kernel(source: str, prelude: Prelude, entry: str) -> Path:
    text = f"""#include "machine.h"
{prelude.text}
#line 1 "kernel"
{source}
#line 1 "entry"
extern "C" __attribute__((visibility("default"))) void machine_entry(const machine::Argument* a) {{ machine::call(&{entry}, a); }}
extern "C" __attribute__((visibility("default"))) const int machine_arity = machine::arity(&{entry});
"""
    flags = (*KERNEL_FLAGS, *volatile_apart(), *(f"-I{p}" for p in prelude.folders()))
    name = f"kernel-{digest_of(prelude.headers(), text, KERNEL_FLAGS)}.so"
    return build(text, flags, name, f"kernel `{entry}`")


def _triple(size: int | Sequence[int]) -> tuple[int, int, int]:
    x = (size,) if isinstance(size, int) else tuple(size)
    return (*x, 1, 1)[:3]  # type: ignore[return-value]


def _check(grid: Sequence[int], threads: Sequence[int], cluster: Sequence[int], mode: str) -> None:
    if mode not in MODES:
        raise MachineError(f"no mode `{mode}` of the emulator: {', '.join(MODES)}")
    if min(*grid, *threads, *cluster) < 1 or np.prod(threads) > 1024 or np.prod(cluster) > 16:
        raise MachineError(f"a launch of grid {grid}, threads {threads}, cluster {cluster} is not possible")
    if any(g % c for g, c in zip(grid, cluster)):
        raise MachineError(f"the grid {grid} is no multiple of the cluster {cluster}")


def run(
    source: str,
    prelude: Prelude,
    entry: str,
    arguments: Arguments,
    *,
    grid: int | Sequence[int],
    threads: int | Sequence[int],
    shared_bytes: int = 0,
    cluster: int | Sequence[int] = (1, 1, 1),
    mode: str = "early",
    seed: int = 0,
    timeout: float = 120.0,
) -> Report:
    """Run ``entry`` of ``source`` block by block.

    Arguments are numpy arrays (written in place), numbers, or ``Packed`` bytes. ``mode`` says when asynchronous
    operations take place: as early as allowed, as late as allowed, or at random (``seed``). Raises ``MachineError`` if
    the source does not compile or the launch is malformed; whatever the kernel does wrong is in the report.
    """
    grid, threads, cluster = _triple(grid), _triple(threads), _triple(cluster)
    _check(grid, threads, cluster, mode)
    begin = time.perf_counter()
    host, kernel = _host(prelude), _kernel(source, prelude, entry)
    compiled = time.perf_counter() - begin
    head = [*grid, *threads, *cluster, shared_bytes, prelude.subgroup, MODES.index(mode), seed & (2**64 - 1)]
    data, places = request.encode(head, arguments)
    with tempfile.NamedTemporaryFile(prefix="tile-machine-") as file:
        file.write(data)
        file.flush()
        try:
            done = subprocess.run([host, kernel, file.name], capture_output=True, text=True, timeout=timeout)
        except subprocess.TimeoutExpired:
            late = Finding("timeout", f"the run took longer than {timeout:g} s", (), (0, 0, 0), 0, 1)
            return Report((late,), stopped=True, compile_seconds=compiled)
        if done.returncode not in (0, 3):
            raise MachineError(f"the emulator ended with code {done.returncode}: {done.stderr.strip()}")
        _take_back(file.name, places)
    return parse(done.stdout, source, kernel, compiled)


def _take_back(name: str, places: list[tuple[Array, int]]) -> None:
    raw = Path(name).read_bytes()
    for array, offset in places:
        if array.flags.writeable:
            flat: Any = np.reshape(array, -1)
            flat.view(np.uint8)[:] = np.frombuffer(raw, np.uint8, array.nbytes, offset)
