"""The compiler role: cubins for several architectures, figures and findings, options, and what it says when it cannot.

NVRTC must be installed: a missing one is a failure here.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tile_backend_cuda.compiler import CudaCompiler, disassembler, report, toolkit
from tile_backend_cuda.compiler.options import Options
from tile_core.backend import Artifact, LaunchSpec, Source
from tile_core.errors import BackendError, InternalError, Unsupported
from tile_core.hardware import Target
from tile_core.registry import registry

KERNELS = """
extern "C" __global__ void __launch_bounds__(128) add(const float* a, const float* b, float* c, int n) {
  __shared__ float staged[128];
  int i = blockIdx.x * 128 + threadIdx.x;
  staged[threadIdx.x] = i < n ? a[i] : 0.f;
  __syncthreads();
  if (i < n) c[i] = staged[127 - threadIdx.x] + b[i];
}
extern "C" __global__ void scale(float* a) { a[threadIdx.x] = sinf(a[threadIdx.x]) / 3.f; }
"""
ADD, SCALE = ("add", ("(n + 127) // 128",), (128,)), ("scale", (1,), (128,))

SPILLING = """
extern "C" __global__ void __launch_bounds__(1024, 2) many(float* a) {
  float x[80];
  #pragma unroll
  for (int i = 0; i < 80; i++) x[i] = a[i * 1024 + threadIdx.x];
  __syncthreads();
  #pragma unroll
  for (int i = 0; i < 80; i++) a[i * 1024 + threadIdx.x] = x[i] * x[(i + 7) % 80] + x[(i * 3) % 80];
}
"""
INDEXED = """
extern "C" __global__ void indexed(int* a, int n) {
  int x[64];
  for (int i = 0; i < n; i++) x[(i * 7 + n) % 64] = a[i];
  for (int i = 0; i < n; i++) a[i] = x[(i + n) % 64];
}
"""


def wgmma(clear: str) -> str:
    """A matrix product with two wgmma in flight whose accumulator is cleared by ``clear``."""
    return (
        """
typedef unsigned long long u64;
extern "C" __global__ void __launch_bounds__(128) product(float* c, u64 a, u64 b, int n) {
  float d[4];
  for (int i = 0; i < 4; i++) CLEAR;
  for (int k = 0; k < n; k++) {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0,%1,%2,%3}, %4, %5, 1, 1, 1, 0, 0;"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(a), "l"(b));
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
  }
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  for (int i = 0; i < 4; i++) c[threadIdx.x * 4 + i] = d[i];
}
"""
    ).replace("CLEAR", clear)


PRODUCT = ("product", (1,), (128,))


def compiler(arch: str, **options: str) -> CudaCompiler:
    backend = registry().get("cuda")
    return backend.compiler(backend.info(Target("cuda", arch, tuple(options.items()))))  # type: ignore[return-value]


def source(text: str, *entries: Any, **extra: Any) -> Source:
    return Source(text, "cuda", ".cu", LaunchSpec((), entries or (ADD,), extra=extra))


def test_nvrtc_is_installed() -> None:
    assert toolkit.libraries(), "pip install -r tests/requirements.txt"
    assert toolkit.libraries()[0].version >= (13,)


@pytest.mark.parametrize(
    "arch", ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_103a", "sm_120a"]
)
def test_cubins(arch: str) -> None:
    made = compiler(arch).compile(source(KERNELS, ADD, SCALE), {"strict": True})
    assert made.kind == "cubin"
    assert made.data[:4] == b"\x7fELF"
    assert b".nv.ptx" not in made.data
    assert made.findings == ()
    assert "Used" in made.log


def test_figures_of_each_kernel() -> None:
    resources = compiler("sm_90a").compile(source(KERNELS, ADD, SCALE), {}).resources
    assert resources["add.shared"] == resources["shared"] == 512
    assert resources["scale.shared"] == 0
    assert resources["registers"] == max(resources["add.registers"], resources["scale.registers"]) > 0
    assert resources["spill_stores"] == resources["spill_loads"] == resources["stack"] == 0
    one = compiler("sm_90a").compile(source(KERNELS.partition('extern "C" __global__ void scale')[0]), {})
    assert "add.registers" not in one.resources
    dynamic = compiler("sm_90a").compile(source(KERNELS, ADD, SCALE, shared={"add": 65536}), {}).resources
    assert dynamic["add.shared"] == dynamic["shared"] == 65536 + 512


@pytest.mark.parametrize(
    ("text", "entry", "message"),
    [
        (SPILLING, ("many", (1,), (1024,)), r"many spills registers: \d+ bytes written, \d+ read"),
        (INDEXED, ("indexed", (1,), (128,)), "indexed keeps 256 bytes for each thread in memory"),
        (wgmma("d[i] = 0.f"), PRODUCT, "C7515: Potential Performance Loss: wgmma"),
    ],
    ids=["spills", "stack", "wgmma"],
)
def test_findings(text: str, entry: Any, message: str) -> None:
    made = compiler("sm_90a").compile(source(text, entry), {})
    (finding,) = made.findings
    assert re.search(message, finding.message)
    assert finding.level == "warning"
    assert finding.remedy
    with pytest.raises(InternalError, match=message):
        compiler("sm_90a").compile(source(text, entry), {"strict": True})


def test_the_cure_of_c7515() -> None:
    clear = 'asm volatile("mov.f32 %0, 0f00000000;" : "=f"(d[i]))'
    text = source(wgmma(clear), PRODUCT)
    made = compiler("sm_90a").compile(text, {"strict": True})
    assert made.findings == ()
    assert "HGMMA" in compiler("sm_90a").disassemble(source(""), made)


def test_the_log_of_nvcc_reads_the_same() -> None:
    log = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'b' for 'sm_80'
ptxas info    : Function properties for b
    16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 255 registers, used 2 barriers, 16 bytes cumulative stack size, 1024 bytes smem, 360 bytes cmem[0]
ptxas info    : (C7504) Potential Performance Loss: 'setmaxnreg' ignored to maintain minimum register requirement
ptxas warning : Value of threads per SM for entry b is out of range
"""
    said = report.read(log)
    assert said.resources == {
        "stack": 16,
        "spill_stores": 8,
        "spill_loads": 12,
        "registers": 255,
        "barriers": 2,
        "shared": 1024,
    }
    texts = [f.message.split(" ")[0] for f in said.findings]
    assert texts == ["C7504:", "Value", "b"]


def test_functions_that_are_called_have_findings_too() -> None:
    log = """Function properties for _Z4partf
    8 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads"""
    said = report.read(log)
    assert said.resources == {}
    assert said.findings[0].message.startswith("_Z4partf spills")


def test_fast_math_is_off_unless_asked_for() -> None:
    exact = compiler("sm_90a").compile(source(KERNELS, ADD, SCALE), {})
    fast = compiler("sm_90a", fast_math="1").compile(source(KERNELS, ADD, SCALE), {})
    also = compiler("sm_90a").compile(source(KERNELS, ADD, SCALE), {"fast_math": True})
    assert exact.data != fast.data
    assert fast.data == also.data
    assert "MUFU.SIN" in compiler("sm_90a").disassemble(source(""), fast)


def test_line_info() -> None:
    plain = compiler("sm_80").compile(source(KERNELS), {})
    lines = compiler("sm_80").compile(source(KERNELS), {"line_info": True})
    assert len(lines.data) > len(plain.data)


def test_options() -> None:
    assert Options.of({"strict": "0", "fast_math": "on"}) == Options(fast_math=True)
    with pytest.raises(Unsupported, match="no option 'fast_mat'") as caught:
        compiler("sm_90a").compile(source(KERNELS), {"fast_mat": 1})
    assert "did you mean 'fast_math'?" in str(caught.value)


def test_source_that_does_not_compile() -> None:
    with pytest.raises(InternalError, match='identifier "oops" is undefined') as caught:
        compiler("sm_90a").compile(source('extern "C" __global__ void add() { oops; }'), {})
    folder = Path(str(caught.value).rpartition("with the folder ")[2])
    assert "oops" in (folder / "kernel.cu").read_text()
    assert "undefined" in (folder / "log.txt").read_text()
    with pytest.raises(InternalError, match="compiles cuda"):
        compiler("sm_90a").compile(Source("", "llvm", ".ll", LaunchSpec((), ())), {})


def test_more_than_the_target_has() -> None:
    message = "add needs 167424 bytes of shared memory in each block, sm_80 has 166912"
    with pytest.raises(Unsupported, match=message) as caught:
        compiler("sm_80").compile(source(KERNELS, shared={"add": 166912}), {})
    assert "fewer stages" in str(caught.value)


def test_more_registers_than_there_are() -> None:
    text = SPILLING.replace("__launch_bounds__(1024, 2)", "")
    with pytest.raises(Unsupported, match=r"many needs \d+ registers in each block, sm_90a has 65536"):
        compiler("sm_90a").compile(source(text, ("many", (1,), (1024,))), {})


# What is not installed.


def wheels(folder: Path, *found: tuple[str, str, str]) -> Path:
    """A folder as pip makes it: (wheel's folder, distribution, file)."""
    for place, distribution, name in found:
        library = folder / "nvidia" / place / "lib" / name
        library.parent.mkdir(parents=True, exist_ok=True)
        library.write_bytes(b"")
        (folder / f"{distribution}.dist-info").mkdir()
    return folder


NEW = ("cu13", "nvidia_cuda_nvrtc-13.0.88", "libnvrtc.so.13")
OLD = ("cuda_nvrtc", "nvidia_cuda_nvrtc_cu12-12.6.85", "libnvrtc.so.12")


@pytest.fixture
def only(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., None]:
    """Nothing is installed but these wheels."""

    def install(*found: tuple[str, str, str]) -> None:
        monkeypatch.setattr(sys, "path", [str(wheels(tmp_path, *found))])
        monkeypatch.setattr(toolkit, "_home_folders", lambda homes, kinds: [])
        monkeypatch.setattr(toolkit, "_loads", lambda soname: False)
        monkeypatch.setenv("PATH", "")
        toolkit._libraries.cache_clear()

    return install


@pytest.fixture(autouse=True)
def fresh():
    yield
    toolkit._libraries.cache_clear()


def test_no_nvrtc(only: Callable[..., None]) -> None:
    only()
    with pytest.raises(BackendError, match="NVRTC is not found") as caught:
        compiler("sm_90a").compile(source(KERNELS), {})
    assert "pip install nvidia-cuda-nvrtc;" in str(caught.value)
    assert compiler("sm_90a").fingerprint() == "no NVRTC"
    with pytest.raises(BackendError, match="pip install nvidia-cuda-nvrtc-cu12"):
        toolkit.library("sm_70")


def test_architectures_that_one_nvrtc_does_not_know(only: Callable[..., None]) -> None:
    only(NEW)
    with pytest.raises(BackendError, match=r"NVRTC 13\.0\.88 cannot compile for sm_70") as caught:
        compiler("sm_70").compile(source(KERNELS), {})
    assert "pip install --upgrade nvidia-cuda-nvrtc-cu12" in str(caught.value)


def test_each_architecture_gets_the_nvrtc_that_knows_it(only: Callable[..., None]) -> None:
    only(NEW, OLD)
    assert toolkit.library("sm_90a").version == (13, 0, 88)
    assert toolkit.library("sm_70").version == (12, 6, 85)
    assert compiler("sm_70").fingerprint() == "nvrtc 12.6.85"


def test_an_old_nvrtc(only: Callable[..., None]) -> None:
    only(OLD)
    assert toolkit.library("sm_90a").version == (12, 6, 85)
    with pytest.raises(BackendError, match=r"sm_100a needs an NVRTC of CUDA 12\.8 or newer"):
        toolkit.library("sm_100a")


def test_a_named_library() -> None:
    found = toolkit.libraries()[0]
    assert compiler("sm_80", nvrtc=found.path).compile(source(KERNELS), {}).data
    with pytest.raises(BackendError, match="there is no NVRTC at"):
        compiler("sm_80", nvrtc="nowhere.so").compile(source(KERNELS), {})


def test_a_library_that_says_so_itself() -> None:
    """An architecture that no table knows is refused by what the library tells."""
    import dataclasses

    backend = registry().get("cuda")
    info = backend.info(Target("cuda", "sm_90a"))
    odd = dataclasses.replace(info, target=Target("cuda", "sm_91"))
    with pytest.raises(BackendError, match="cannot compile for sm_91"):
        CudaCompiler(odd).compile(source(KERNELS), {})


def test_no_disassembler(only: Callable[..., None]) -> None:
    only()
    with pytest.raises(Unsupported, match="no disassembler") as caught:
        disassembler.disassemble(b"")
    assert "pip install nvidia-cuda-nvdisasm" in str(caught.value)


def test_a_cubin_that_is_none() -> None:
    with pytest.raises(BackendError, match="fails"):
        compiler("sm_90a").disassemble(source(""), Artifact("cubin", b"nothing"))


def test_fingerprint_loads_nothing() -> None:
    code = """
import sys
from tile_core.hardware import Target
from tile_core.registry import registry
backend = registry().get("cuda")
compiler = backend.compiler(backend.info(Target("cuda", "sm_90a")))
print(compiler.fingerprint(), [m for m in ("numpy", "torch", "tvm", "ctypes.util", "subprocess") if m in sys.modules])
print(any("nvrtc" in line for line in open("/proc/self/maps")) if sys.platform == "linux" else False)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    first, loaded = done.stdout.splitlines()
    assert first.startswith("nvrtc 13.")
    assert loaded == "False"
    assert "numpy" not in first and "torch" not in first and "tvm" not in first


def nvcc() -> str | None:
    return toolkit.program("nvcc")


@pytest.mark.skipif(nvcc() is None, reason="nvcc is not installed")
def test_nvcc() -> None:
    chosen = compiler("sm_80", compiler="nvcc")
    made = chosen.compile(source(KERNELS, ADD, SCALE), {"strict": True})
    assert made.resources["add.shared"] == 512
    assert chosen.fingerprint().startswith("nvcc ")
    with pytest.raises(InternalError, match="oops"):
        chosen.compile(source('extern "C" __global__ void add() { oops; }'), {})


def test_no_nvcc(only: Callable[..., None]) -> None:
    only()
    with pytest.raises(BackendError, match="there is no nvcc"):
        compiler("sm_80", compiler="nvcc").compile(source(KERNELS), {})
    with pytest.raises(BackendError, match=f"there is no nvcc at {os.sep}nowhere{os.sep}nvcc"):
        compiler("sm_80", compiler=f"{os.sep}nowhere{os.sep}nvcc").fingerprint()
