"""The conformance cases and the small examples on a GPU under compute-sanitizer, and whether their results are right.

    python tests/device/sanitizer.py dumps/examples

The folder is made by ``examples_make.py`` elsewhere. Needs what ``examples.py`` needs, and compute-sanitizer of the CUDA toolkit.
Several cases share a process, several processes run at once; a part that is not clean is halved until the case is found.
racecheck does not see that an mbarrier orders what the lanes of a warp did if one lane arrives for them, after ``__syncwarp``; it
reports such accesses as races (compute-sanitizer of CUDA 13.0, seen with a kernel of a write, that arrival, a wait and a read).
Prints a line of JSON for each case and one for all; ends with 1 if a case failed, with 2 if the tool is missing or sees nothing.
"""

from __future__ import annotations

import argparse
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from example_cases import cases as examples
from isolated import Case, add_range, perform, summary
from packed import first_on_path, unpacked

TOOL = "compute-sanitizer"
PLACES = ("/usr/local/cuda*", "/opt/cuda*", "/opt/nvidia/*", "/usr/lib/nvidia-cuda-toolkit", "/usr/lib/cuda*")
TOOLS = ("memcheck", "racecheck", "synccheck", "initcheck")
CLEAN = re.compile(r"SUMMARY: 0 (errors|hazards)")
FOUND, PART, SECONDS = 86, 10, 60  # exit code for findings, cases in a process, seconds for a case
PLANTED = 'extern "C" __global__ void planted(float* A, int N) { if (threadIdx.x == 0) A[N] = 1; }\n'


def found() -> str:
    """The tool's path; "" if it is not here."""
    folders = [os.environ.get(name, "") for name in ("CUDA_HOME", "CUDA_PATH", "CUDA_ROOT")]
    folders += [f for pattern in PLACES for f in sorted(glob.glob(pattern), reverse=True)]
    folders += [f for p in sys.path for f in glob.glob(f"{p}/nvidia/*")]
    inside = (f"{f}/{at}" for f in folders if f for at in ("bin", TOOL, f"extras/{TOOL}"))
    return shutil.which(TOOL) or next((p for f in inside if (p := shutil.which(TOOL, path=f))), "")


# ---- the process that is watched


def planted() -> str:
    """Writes behind the end of a tensor, which must be reported."""
    import torch

    from tile_core.backend import LaunchParam, LaunchSpec, Source
    from tile_core.registry import registry

    backend = registry().get("cuda")
    device = backend.device(0)
    params = (LaunchParam("A", "tensor", "float32", ("N",), written=True), LaunchParam("N", "dim", "int32"))
    source = Source(PLANTED, "cuda", ".cu", LaunchSpec(params, (("planted", (1,), (32,)),)))
    artifact = backend.compiler(backend.info(device.target)).compile(source, {})
    launcher = backend.launcher(device)
    if not launcher.load(artifact, source.launch).call((torch.zeros(8, device="cuda"),), None):
        raise RuntimeError("the planted kernel was not launched")
    launcher.synchronize()
    return ""


def conformance() -> Iterator[Case]:
    from tile_core.registry import registry
    from tile_core.testing import kernels, requires

    backend = registry().get("cuda")
    device = backend.device(0)
    info = backend.info(device.target)
    for case in kernels.CASES:
        unfit = requires.unfit(case, info)
        yield f"conformance {case}", partial(str, f"skipped: {unfit}") if unfit else partial(_numerics, case)


def _numerics(case: Any) -> str:
    from tile_core import interpreter
    from tile_core.registry import registry
    from tile_core.testing import arguments, stages

    backend = registry().get("cuda")
    made = arguments.made(case)
    wanted = arguments.copies(made)
    interpreter.run(case.program, wanted)
    got = stages.launch(case, backend, backend.device(0), made)
    try:
        arguments.compare(case, got, wanted)
    except AssertionError as wrong:
        return str(wrong)
    return ""


def all_cases(folder: Path, only: str) -> list[Case]:
    """The planted one first."""
    import examples as program

    stored = dict(np.load(folder / "expected.npz"))
    small = (
        (f"example {e.name}", partial(program.check, e, stored, True)) for e in examples() if not e.large
    )
    return [("planted", planted), *(c for c in (*conformance(), *small) if only in c[0])]


# ---- the one that watches


@dataclass(frozen=True)
class Part:
    """What a process said of its cases. ``told``: why it is not clean, "" if it is."""

    rows: list[dict[str, Any]]
    told: str


def watched(tool: str, check: str, command: list[str], numbers: range) -> Part:
    """Runs cases in one process under the tool."""
    with tempfile.TemporaryDirectory(prefix="sanitizer-") as folder:
        log = Path(folder) / "log"
        head = [tool, "--tool", check, "--error-exitcode", str(FOUND), "--log-file", str(log), sys.executable]
        process = [*head, *command, "--range", f"{numbers.start}:{numbers.stop}"]
        try:
            done = subprocess.run(
                process, capture_output=True, text=True, timeout=60 + SECONDS * len(numbers)
            )
        except subprocess.TimeoutExpired:
            return Part([], "hangs")
        text = log.read_text("utf8", "replace") if log.is_file() else ""
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"case"')]
    wrong = [r["problem"] for r in rows if r["problem"] and not r["problem"].startswith("skipped")]
    if done.returncode == 0 and len(rows) == len(numbers) and not wrong and CLEAN.search(text):
        return Part(rows, "")
    lines = [line for line in text.splitlines() if "Host Frame" not in line]
    told = [*wrong, f"exit code {done.returncode}", *lines[:30], *lines[30:][-2:], done.stderr[-600:]]
    return Part(rows, "\n".join(told))


def examined(run: Callable[[range], Part], numbers: range) -> list[dict[str, Any]]:
    """A row for each case."""
    part = run(numbers)
    if not part.told:
        return part.rows
    if len(numbers) == 1:
        name = part.rows[0]["case"] if part.rows else f"number {numbers.start}"
        return [{"case": name, "number": numbers.start, "problem": part.told}]
    middle = numbers.start + len(numbers) // 2
    halves = range(numbers.start, middle), range(middle, numbers.stop)
    return [row for half in halves for row in examined(run, half)]


def watch(given: argparse.Namespace) -> int:
    if not (tool := found()):
        print(json.dumps({"problem": f"{TOOL} is not on this machine: neither on PATH nor in {PLACES}"}))
        return 2
    first_on_path(unpacked(given.folder))
    # each tensor is an allocation of its own, so that what lies behind it belongs to nobody
    os.environ |= {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1", "TILE_CACHE_DIR": tempfile.mkdtemp(prefix="tile-")}
    command = [__file__, str(given.folder), "--only", given.only]
    run = partial(watched, tool, given.tool, command)
    told = run(range(1)).told if given.tool == "memcheck" else ""
    if given.tool == "memcheck" and "Invalid __global__ write" not in told:
        print(json.dumps({"problem": f"{tool} does not see a planted error: {told}"}))
        return 2
    listed = subprocess.run(
        [sys.executable, *command, "--list"], capture_output=True, text=True, check=True
    ).stdout
    count = int(listed.splitlines()[-1])
    parts = [range(at, min(at + PART, count)) for at in range(1, count, PART)]
    results: list[dict[str, Any]] = []
    with ThreadPoolExecutor(max(1, min(8, (os.cpu_count() or 2) // 2))) as pool:
        for rows in pool.map(partial(examined, run), parts):
            results += rows
            print(*map(json.dumps, rows), sep="\n", flush=True)
    print(json.dumps({"tool": tool, "check": given.tool, "planted error seen": bool(told)}))
    return summary(results)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tool", default="memcheck", choices=TOOLS, help="what is looked for")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--list", action="store_true", help="only say how many cases there are")
    add_range(parser)
    given = parser.parse_args()
    if given.list or given.range is not None:
        listed = all_cases(given.folder, given.only)
        if given.list:
            print(len(listed))
            return 0
        return perform(listed, given.range)
    return watch(given)


if __name__ == "__main__":
    raise SystemExit(main())
