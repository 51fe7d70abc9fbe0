"""Make the folder that ``launch.py`` runs from on a machine with a GPU: wheels, bundles of hand-written kernels, the bare loop.

    python tests/device/launch_make.py dumps/launch

Needs pip, NVRTC and a C compiler; no GPU.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from packed import wheels

from tile_core.backend import LaunchParam, LaunchSpec, Source
from tile_core.cli import main as tile
from tile_core.hardware import Target
from tile_core.registry import registry
from tile_core.runtime.bundle import write
from tile_core.runtime.cache import Entry

ROOT = Path(__file__).parents[2]
GENERATED = ("gemm_relu", "softmax")  # examples, with their own sizes

ADD = """extern "C" __global__ void __launch_bounds__(256) add(const float* A, const float* B, float* C, int N) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < N) C[i] = A[i] + B[i];
}
"""
EMPTY = """extern "C" __global__ void empty(void* A, void* B, void* C, int M, int N, int K) {}
"""
EMPTY_MAPS = """struct alignas(64) Map { unsigned long long x[16]; };
extern "C" __global__ void empty_maps(const __grid_constant__ Map a, const __grid_constant__ Map b, const __grid_constant__ Map c,
                                      int M, int N, int K) {}
"""
# a tile of 64 x 64 by the copy engine: in, added, out
ADD_TMA = """typedef unsigned u32;
typedef unsigned long long u64;
struct alignas(64) Map { u64 x[16]; };
__device__ u32 shared(const void* p) { return (u32)__cvta_generic_to_shared(p); }
__device__ void load(void* to, const Map* map, int x, int y, u64* bar) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
               :: "r"(shared(to)), "l"(map), "r"(x), "r"(y), "r"(shared(bar)) : "memory");
}
extern "C" __global__ void __launch_bounds__(128) add_tma(const __grid_constant__ Map A, const __grid_constant__ Map B,
                                                          const __grid_constant__ Map C) {
  __shared__ alignas(128) float a[32 * 64];
  __shared__ alignas(128) float b[32 * 64];
  __shared__ alignas(8) u64 bar;
  int x = blockIdx.x * 64, y = blockIdx.y * 32;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(shared(&bar)));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" :: "r"(shared(&bar)), "r"(2 * 32 * 64 * 4) : "memory");
    load(a, &A, x, y, &bar);
    load(b, &B, x, y, &bar);
  }
  __syncthreads();
  u32 done = 0;
  while (!done)
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
                 : "=r"(done) : "r"(shared(&bar)) : "memory");
  for (int i = threadIdx.x; i < 32 * 64; i += 128) a[i] += b[i];
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];"
                 :: "l"(&C), "r"(x), "r"(y), "r"(shared(a)) : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
  }
}
"""
# two launches, the second reads what the first wrote into the workspace
TWO = """extern "C" __global__ void square(const float* A, float* C, int N, float* W) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < N) W[i] = A[i] * A[i];
}
extern "C" __global__ void halve(const float* A, float* C, int N, float* W) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < N) C[i] = W[i] / 2;
}
"""
CLUSTER = """extern "C" __global__ void rank(int* C, int N) {
  unsigned r, n;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
  asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(n));
  if (threadIdx.x == 0) C[blockIdx.x] = r + 100 * n;
}
"""
SHARED = """extern "C" __global__ void reverse(float* A, int N) {
  extern __shared__ float s[];
  for (int i = threadIdx.x; i < N; i += 256) s[i] = A[i];
  __syncthreads();
  for (int i = threadIdx.x; i < N; i += 256) A[i] = s[N - 1 - i];
}
"""
SCALARS = """extern "C" __global__ void scalars(float* C, float f, double d, signed char b, unsigned short h, long long l,
                                   bool t, int N) {
  if (threadIdx.x == 0) C[0] = f, C[1] = (float)d, C[2] = b, C[3] = h, C[4] = (float)l, C[5] = t, C[6] = N;
}
"""
WILD = """extern "C" __global__ void wild(float* A, int N) { *(volatile float*)16 = A[0]; }
"""


def tensor(name: str, shape: Sequence[int | str], dtype: str = "float32", **more: Any) -> LaunchParam:
    return LaunchParam(name, "tensor", dtype, tuple(shape), **more)


def dims(*names: str) -> tuple[LaunchParam, ...]:
    return tuple(LaunchParam(n, "dim", "int32") for n in names)


def tensor_map(
    of: str, dtype: str, size: int, box: tuple[int, int], columns: str, rows: str
) -> dict[str, Any]:
    named = {"name": f"{of}_map", "of": of, "dtype": dtype, "box": list(box)}
    return {**named, "dims": [columns, rows], "strides": [f"{columns} * {size}"], "promotion": 128}


@dataclass
class Made:
    """A kernel to be bundled."""

    text: str
    params: tuple[LaunchParam, ...]
    entries: tuple[Any, ...]
    extra: dict[str, Any] = field(default_factory=dict)
    arch: str = "sm_90a"


VECTORS = (tensor("A", "N"), tensor("B", "N"), tensor("C", "N", written=True), *dims("N"))
BLOCKS = "(N + 255) // 256"
MATRICES = tuple(tensor(n, ("M", "N"), alignment=16) for n in "ABC")
THREE = (
    tensor("A", ("M", "K"), "bfloat16", alignment=16),
    tensor("B", ("K", "N"), "bfloat16", alignment=16),
    tensor("C", ("M", "N"), "bfloat16", alignment=16),
    *dims("M", "N", "K"),
)
SHAPES = {"A": ("K", "M"), "B": ("N", "K"), "C": ("N", "M")}
THREE_MAPS = [tensor_map(n, "bfloat16", 2, (64, 64), *SHAPES[n]) for n in "ABC"]
ADD_MAPS = [tensor_map(n, "float32", 4, (64, 32), "N", "M") for n in "ABC"]

BUNDLES = {
    "add": Made(ADD, VECTORS, (("add", (BLOCKS,), (256,)),)),
    "add_pdl": Made(ADD, VECTORS, (("add", (BLOCKS,), (256,)),), {"pdl": {"add": True}}),
    "add_sm80": Made(ADD, VECTORS, (("add", (BLOCKS,), (256,)),), arch="sm_80"),
    "empty": Made(EMPTY, THREE, (("empty", (1,), (128,)),)),
    "empty_maps": Made(
        EMPTY_MAPS,
        THREE,
        (("empty_maps", (1,), (128,)),),
        {
            "tensor_maps": THREE_MAPS,
            "parameters": {"empty_maps": ["A_map", "B_map", "C_map", "M", "N", "K"]},
        },
    ),
    "add_tma": Made(
        ADD_TMA,
        (*MATRICES, *dims("M", "N")),
        (("add_tma", ("(N + 63) // 64", "(M + 31) // 32"), (128,)),),
        {"tensor_maps": ADD_MAPS, "parameters": {"add_tma": ["A_map", "B_map", "C_map"]}},
    ),
    "workspace": Made(
        TWO,
        (tensor("A", "N"), tensor("C", "N", written=True), *dims("N")),
        (("square", (BLOCKS,), (256,)), ("halve", (BLOCKS,), (256,))),
        {"workspaces": [[["N"], 4]]},
    ),
    "cluster": Made(
        CLUSTER,
        (tensor("C", "N", "int32", written=True), *dims("N")),
        (("rank", ("N",), (32,)),),
        {"cluster": {"rank": [4, 1, 1]}},
    ),
    "reverse": Made(
        SHARED,
        (tensor("A", "N", written=True), *dims("N")),
        (("reverse", (1,), (256,)),),
        {"shared": {"reverse": 200_000}},
    ),
    "scalars": Made(
        SCALARS,
        (
            tensor("C", ("N",), written=True),
            *(
                LaunchParam(f"s{n}", "scalar", d)
                for n, d in enumerate(("float32", "float64", "int8", "float16", "int64", "bool"))
            ),
            *dims("N"),
        ),
        (("scalars", (1,), (32,)),),
    ),
    "wild": Made(WILD, (tensor("A", "N"), *dims("N")), (("wild", (1,), (32,)),)),
}


def bundle(name: str, made: Made, folder: Path) -> None:
    backend = registry().get("cuda")
    target = Target("cuda", made.arch)
    compiler = backend.compiler(backend.info(target))
    source = Source(made.text, "cuda", ".cu", LaunchSpec(made.params, made.entries, extra=made.extra))
    artifact = compiler.compile(source, {"strict": True})
    write(folder / name, name, target, Entry(artifact, source, {}), {"toolkit": compiler.fingerprint()})


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--no-wheels", action="store_true", help="only the bundles and the bare loop")
    options = parser.parse_args()
    folder: Path = options.folder.resolve()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, made in BUNDLES.items():
        bundle(name, made, folder / "bundles")
    for name in GENERATED:
        where = str(folder / "bundles" / name)
        if tile(("export", f"{ROOT}/examples/{name}.py:{name}", where, "--target", "cuda:sm_90a")):
            raise SystemExit(f"{name} is not exported")
    bare = [
        "cc",
        "-O2",
        "-shared",
        "-fPIC",
        str(Path(__file__).with_name("bare.c")),
        "-o",
        str(folder / "bare.so"),
    ]
    subprocess.run(bare, check=True)
    if not options.no_wheels:
        wheels(folder)
    print(*(str(f.relative_to(folder)) for f in sorted(folder.rglob("*")) if f.is_file()), sep="\n")


if __name__ == "__main__":
    main()
