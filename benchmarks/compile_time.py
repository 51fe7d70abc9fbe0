"""How long tile takes before a kernel runs: import, front end, plan, compilation, a warm process, a call.

python benchmarks/compile_time.py [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "examples"))

import flash_attention
import gemm_relu
import numpy as np
from about import describe

import tile_core as tile
from tile_core.hardware import Target
from tile_core.registry import registry
from tile_core.runtime.pipeline import compile_program, make_plan

FIRST = """
import time; begin = time.perf_counter()
import sys; sys.path.insert(0, {examples!r})
import numpy as np, gemm_relu
a = np.ones((256, 256), np.float16)
gemm_relu.gemm_relu(256, 256, 256)(a, a)
print(time.perf_counter() - begin)
"""

# Cold: nothing is cached and no kernel was compiled before, but modules are imported. {stage}: 0 up to the source, 1 to the cubin.
HOPPER = """
import sys; sys.path.insert(0, {benchmarks!r})
from kernels.gemm import gemm
import tile_backend_cuda.codegen.emit, tile_backend_cuda.compiler, tile_core.inference.complete
from tile_backend_cuda.backend import CudaBackend
from tile_core.hardware import Target
from tile_core.runtime.pipeline import make_plan
import time; begin = time.perf_counter()
backend = CudaBackend()
info = backend.info(Target("cuda", "sm_90a"))
source = backend.codegen(info).emit(make_plan(gemm(4096, 4096, 4096).program, info))
if {stage}: backend.compiler(info).compile(source, {{}})
print(time.perf_counter() - begin)
"""


# Everything of a first call but the launch, stage by stage: modules that a stage imports are part of it.
MLA = """
import sys; sys.path.insert(0, {examples!r})
import json, time
import mla_decode
from tile_backend_cuda.backend import CudaBackend
from tile_core.hardware import Target
from tile_core.runtime.pipeline import make_plan
backend = CudaBackend()
info = backend.info(Target("cuda", "sm_90a"))
at = [time.perf_counter()]
program = mla_decode.decode(128, 128, 8192).program; at.append(time.perf_counter())
plan = make_plan(program, info); at.append(time.perf_counter())
source = backend.codegen(info).emit(plan); at.append(time.perf_counter())
backend.compiler(info).compile(source, {{}}); at.append(time.perf_counter())
print(json.dumps([1e3 * (b - a) for a, b in zip(at, at[1:])]))
"""
STAGES = ("front end", "plan", "source", "cubin")


def median_ms(run: Callable[[], object], rounds: int) -> float:
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        run()
        times.append((time.perf_counter() - begin) * 1e3)
    return statistics.median(times)


def fresh(code: str, folder: str, cache: str = "cache") -> str:
    """What a fresh process prints. Modules have their bytecode in ``folder``, as pip leaves it, kernels are cached in ``cache``."""
    env = {
        **os.environ,
        "TILE_CACHE_DIR": f"{folder}/{cache}",
        "TILE_TARGET": "cpu",
        "PYTHONPYCACHEPREFIX": f"{folder}/bytecode",
    }
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    return done.stdout


def process(code: str, folder: str, cache: str = "cache") -> float:
    """What a fresh process prints, in milliseconds."""
    return float(fresh(code, folder, cache)) * 1e3


def mla(folder: str, rounds: int) -> dict[str, float]:
    """Medians of the stages of MLA decode, of all up to the source together, and of all."""
    code = MLA.format(examples=str(ROOT / "examples"))
    fresh(code, folder)  # writes the bytecode
    runs = [json.loads(fresh(code, folder)) for _ in range(rounds)]
    rows = {
        f"MLA decode: cold, {name}": statistics.median(r[n] for r in runs) for n, name in enumerate(STAGES)
    }
    rows["MLA decode: cold, all of the lowering"] = statistics.median(sum(r[:-1]) for r in runs)
    rows["MLA decode: cold, all"] = statistics.median(map(sum, runs))
    return rows


def attention() -> object:
    return flash_attention.attention.function(
        1, 2, 4096, 4096, 128, block_M=128, block_N=128, threads=256
    ).program


def gemm() -> object:
    return gemm_relu.gemm_relu.function(1024, 1024, 1024, block_M=128, block_N=128, dtype="float32").program


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--json", help="write the figures to this file")
    options.add_argument("--rounds", type=int, default=15)
    given = options.parse_args()
    known = registry()
    cuda = known.get("cuda").info(Target.parse("cuda:sm_90a"))
    host = known.get("cpu").info(Target.parse("cpu"))
    backend = known.get("cpu")
    bare = "import time; b = time.perf_counter(); import {}; print(time.perf_counter() - b)"
    with tempfile.TemporaryDirectory() as folder:
        rows = {
            "import tile_core": statistics.median(
                process(bare.format("tile_core"), folder) for _ in range(5)
            ),
            "import tile_core.language": statistics.median(
                process(bare.format("tile_core.language"), folder) for _ in range(5)
            ),
        }
        first = FIRST.format(examples=str(ROOT / "examples"))
        process(first, folder, "other")  # writes the bytecode
        rows["GEMM: fresh process to first result, empty cache"] = process(first, folder)
        rows["GEMM: fresh process to first result, warm cache"] = statistics.median(
            process(first, folder) for _ in range(5)
        )
        rows |= {
            "attention: front end": median_ms(attention, given.rounds),
            "attention: front end to plan, cuda:sm_90a": median_ms(
                lambda: make_plan(attention(), cuda), given.rounds
            ),
            "GEMM: front end to object code, cpu": median_ms(
                lambda: compile_program(gemm(), backend, host), given.rounds
            ),
        }
        for stage, what in enumerate(("source", "cubin")):
            code = HOPPER.format(benchmarks=str(ROOT / "benchmarks"), stage=stage)
            rows[f"Hopper GEMM: cold, front end to {what}"] = statistics.median(
                process(code, folder) for _ in range(5)
            )
        rows |= mla(folder, given.rounds)
        kernel = gemm_relu.gemm_relu(64, 64, 64)
        a = np.ones((64, 64), np.float16)
        with tile.target("cpu"):
            kernel(a, a)
            rows["call of a small kernel, output allocated"] = median_ms(lambda: kernel(a, a), 2000)
    for name, ms in rows.items():
        print(f"{name:45} {ms:9.3f} ms")
    if given.json:
        about = describe(" ".join(("python", *sys.argv)))
        Path(given.json).write_text(
            json.dumps({**about, "median_ms": rows}, indent=1) + "\n", encoding="utf8"
        )


if __name__ == "__main__":
    main()
