"""Matrix products in float32 on a WebGPU adapter against a kernel written by hand that computes one element in each invocation.

python benchmarks/webgpu_gemm.py [--size 512] [--target webgpu:lavapipe] [--rounds 5] [--least 2] [--json FILE]

Times are timestamps of the device; copies of arguments do not count. Fails if the best blocks are not ``--least`` times as fast.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from about import describe

import tile_core as tile
import tile_core.language as T
from tile_core.backend import Artifact, LaunchSpec
from tile_core.hardware import Device
from tile_core.registry import registry

# rows, columns, depth of a block, its threads
BLOCKS = (
    (64, 64, 16, 64),
    (64, 64, 32, 64),
    (128, 64, 16, 128),
    (128, 128, 16, 128),
    (128, 128, 8, 256),
    (128, 128, 16, 256),
    (128, 128, 32, 256),
    (64, 128, 16, 128),
)
SIDE = 16  # of a workgroup of the kernel written by hand

NAIVE = """
@group(0) @binding(1) var<storage, read> A: array<f32>;
@group(0) @binding(2) var<storage, read> B: array<f32>;
@group(0) @binding(3) var<storage, read_write> C: array<f32>;
@compute @workgroup_size({side}, {side})
fn naive(@builtin(global_invocation_id) at: vec3<u32>) {{
  if (at.x >= {n}u || at.y >= {n}u) {{ return; }}
  var sum = 0.0f;
  for (var k = 0u; k < {n}u; k++) {{ sum += A[at.y * {n}u + k] * B[k * {n}u + at.x]; }}
  C[at.y * {n}u + at.x] = sum;
}}
"""


@tile.jit
def gemm(size, block_M, block_N, block_K, threads):
    @T.prim_func
    def kernel(
        A: T.Tensor((size, size), "float32"),
        B: T.Tensor((size, size), "float32"),
        C: T.Tensor((size, size), "float32"),
    ):
        with T.Kernel(T.ceildiv(size, block_N), T.ceildiv(size, block_M), threads=threads) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), "float32")
            B_shared = T.alloc_shared((block_K, block_N), "float32")
            acc = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(acc)
            for k in T.Pipelined(T.ceildiv(size, block_K), num_stages=1):
                T.copy(A[by * block_M, k * block_K], A_shared)
                T.copy(B[k * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, acc)
            T.copy(acc, C[by * block_M, bx * block_N])

    return kernel


def naive(n: int, device: Device, like: LaunchSpec) -> Callable[..., None]:
    """The kernel written by hand, to be called as a compiled one is: with addresses of A, B and C."""
    groups = -(-n // SIDE)
    bindings = {"naive": (("A", "read"), ("B", "read"), ("C", "read_write"))}
    extra = {**like.extra, "bindings": bindings, "features": (), "subgroup": 0, "workspaces": ()}
    spec = replace(like, entries=(("naive", (groups, groups), (SIDE, SIDE)),), extra=extra)
    text = NAIVE.format(n=n, side=SIDE).encode()
    loaded = registry().get("webgpu").launcher(device).load(Artifact("wgsl", text), spec)
    return lambda *arrays: loaded([a.ctypes.data for a in arrays], [(groups, groups)])


def contestants(n: int, target: str, device: Device) -> dict[str, Callable[..., object]]:
    """By name; each takes A, B and C."""
    kernels = {f"tile {blocks}": gemm(n, *blocks) for blocks in BLOCKS}
    with tile.target(target):
        like = next(iter(kernels.values())).compiled().launch
    return {"one element an invocation": naive(n, device, like), **kernels}


def measured(
    runs: dict[str, Callable[..., object]], arrays: list[np.ndarray], device: Device, rounds: int
) -> dict[str, float]:
    """Median milliseconds of each over interleaved rounds. Stops the program if a result is wrong."""
    a, b, c = arrays
    wanted = a @ b
    timer = registry().get("webgpu").timer(device)
    times: dict[str, list[float]] = {name: [] for name in runs}
    for name, run in runs.items():
        c.fill(np.nan)
        run(a, b, c)
        if not np.abs(c - wanted).max() <= 1e-4 * np.abs(wanted).max():
            raise SystemExit(f"{name}: the result differs from numpy's")
    for _ in range(rounds):
        for name, run in runs.items():
            times[name].append(timer.time(partial(run, a, b, c), warmup_ms=0, repeat_ms=1).median)
    return {name: statistics.median(found) for name, found in times.items()}


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--size", type=int, default=512)
    parser.add_argument("--target", default="webgpu:lavapipe")
    parser.add_argument("--rounds", type=int, default=5, help="samples of each, interleaved")
    parser.add_argument("--least", type=float, default=2, help="times as fast as the kernel written by hand")
    parser.add_argument("--json", help="write the figures to this file")
    return parser.parse_args()


def main() -> int:
    given = options()
    n = given.size
    found = [d for d in registry().get("webgpu").devices() if str(d.target) == given.target]
    if not found:
        raise SystemExit(
            f"no adapter of {given.target} here; `python -m tile_core doctor` says what is missing"
        )
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((n, n)).astype(np.float32) for _ in range(3)]
    with tile.target(given.target):
        times = measured(contestants(n, given.target, found[0]), arrays, found[0], given.rounds)
    base, *_ = times.values()
    rows: list[dict[str, Any]] = [
        {"what": name, "median_ms": ms, "gflops": 2 * n**3 / ms / 1e6, "times_as_fast": base / ms}
        for name, ms in times.items()
    ]
    print(f"float32 {n}x{n}x{n} on {found[0].name}, medians of {given.rounds} interleaved samples")
    for row in rows:
        print("{what:26} {median_ms:8.2f} ms {gflops:8.2f} GFLOP/s {times_as_fast:6.2f} x".format(**row))
    if given.json:
        about = {
            **describe(" ".join(("python", *sys.argv))),
            "adapter": found[0].name,
            "driver": found[0].driver,
        }
        Path(given.json).write_text(json.dumps({**about, "rows": rows}, indent=1) + "\n", encoding="utf8")
    return int(max(row["times_as_fast"] for row in rows) < given.least)


if __name__ == "__main__":
    raise SystemExit(main())
