"""Every conformance case and every example to instructions, by clang; what the compiler finds and refuses."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "device"))

from example_cases import basic
from hip_products import BACKEND, Product, compiled, emitted, info_of, instructions

import tile_core.language as T
from tile_backend_rocm.compiler import metadata, toolkit
from tile_core.cli.loading import made
from tile_core.errors import BackendError, InternalError, Unsupported
from tile_core.testing import requires, stages
from tile_core.testing.kernels import CASES, Case, gemm

ARCHS = ("gfx90a", "gfx942")
EXAMPLES = [Path(__file__).parents[2] / "examples" / f"{name}.py" for name in basic()]
TENSORS = {"add": ("A=float32[4096]", "B=float32[4096]")}


@pytest.fixture(scope="session", autouse=True)
def _clang() -> None:
    """apt-get install clang-19 lld-19 llvm-19; for gfx950 clang-22 lld-22."""
    assert toolkit.clang("gfx942").linker


# where gfx90a has instructions of its own
OTHERS = [c for c in CASES if c.name.startswith(("gemm", "attention", "copy"))]
RUNS = [("gfx942", c) for c in CASES] + [("gfx90a", c) for c in OTHERS]


@pytest.mark.parametrize(
    ("arch", "case"), [r for r in RUNS if not requires.unfit(r[1], info_of(r[0]))], ids=str
)
def test_case(case: Case, arch: str) -> None:
    artifact, _ = stages.compiled(case, BACKEND, info_of(arch))
    assert artifact.kind == "hsaco"
    assert artifact.resources["scratch"] == 0, artifact.findings


def _module(path: Path) -> ModuleType:
    name = f"tile_rocm_example_{path.stem}"
    found = importlib.util.spec_from_file_location(name, path)
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules[name] = module
    found.loader.exec_module(module)
    return module


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_example(path: Path, arch: str) -> None:
    info, module = info_of(arch), _module(path)
    names = list(getattr(module, "EXAMPLE", ())) or [n for n in TENSORS if hasattr(module, n)]
    assert names
    for name in names:
        kernel = made(getattr(module, name), TENSORS.get(name, ()), str(info.target), module)
        source = BACKEND.codegen(info).emit(stages.plan(kernel.program, BACKEND, info))
        artifact = BACKEND.compiler(info).compile(source, {"strict": True})
        assert artifact.resources["vgpr_spills"] == 0


@pytest.mark.parametrize("arch", ["gfx942", "gfx90a"])
def test_sizes_that_are_known_at_the_launch(arch: str) -> None:
    """Where a tensor may be larger than offsets reach, gfx90a checks in the kernel."""
    m, n, k = T.dynamic("m, n, k")
    halves = ("float16", "float32", "float16")
    case = Case("dynamic", lambda: gemm(m, n, k * 32, (64, 64, 32), halves), frozenset(("float16",)))
    source = stages.emit(case, BACKEND, info_of(arch))
    assert ("lds_buffer_copy_4_if_checked" in source.text) == (arch == "gfx90a")
    artifact = BACKEND.compiler(info_of(arch)).compile(source, {})
    assert artifact.resources["vgpr_spills"] == 0


def test_metadata() -> None:
    found = metadata.kernels(compiled(Product("gfx942")).data)
    ((name, figures),) = found.items()
    assert name == "main_0"
    assert set(figures) == set(metadata.FIGURES)
    assert figures["shared"] == 49152
    with pytest.raises(InternalError, match="ELF"):
        metadata.kernels(b"nothing of the kind")


def test_spills_are_findings() -> None:
    figures = {"k": dict.fromkeys(metadata.FIGURES, 0) | {"vgpr_spills": 3, "scratch": 12}}
    (finding,) = metadata.findings(figures)
    assert "k spills 3 registers" in finding.message and finding.remedy
    assert metadata.findings({"k": dict.fromkeys(metadata.FIGURES, 0)}) == ()


def test_rejected_source() -> None:
    """The log names the file that is kept, and lines of it."""
    source = emitted(Product("gfx942"))
    wrong = type(source)(source.text.replace("  TILE_ARENA(", "  NO_SUCH("), "hip", ".hip", source.launch)
    with pytest.raises(InternalError, match=r"kernel\.hip:\d+:\d+: error") as caught:
        BACKEND.compiler(info_of("gfx942")).compile(wrong, {})
    folder = Path(str(caught.value.help).rpartition(" ")[2])
    assert (folder / "kernel.hip").read_text() == wrong.text


def test_disassembly() -> None:
    assert any(x.startswith("v_mfma") for x in instructions(Product("gfx942")))


def test_no_clang(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolkit, "compilers", lambda: ())
    with pytest.raises(BackendError, match="clang is not found") as caught:
        toolkit.clang("gfx942")
    assert "apt-get install clang-19" in str(caught.value.help)
    assert BACKEND.compiler(info_of("gfx942")).fingerprint() == "no compiler"
    checks = {c.name: c.run() for c in BACKEND.checks()}
    assert checks["compiler"].level == "warning" and "clang-19" in checks["compiler"].remedy


def test_clang_that_is_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolkit, "compilers", lambda: (toolkit.Clang("/usr/bin/clang-19", 19, "19.1"),))
    with pytest.raises(BackendError, match="cannot compile for gfx950") as caught:
        toolkit.clang("gfx950")
    assert "clang 20" in str(caught.value.why)
    checks = {c.name: c.run() for c in BACKEND.checks()}
    assert "none compiles for gfx950" in checks["compiler"].message


def test_options() -> None:
    source = emitted(Product("gfx942"))
    compiler = BACKEND.compiler(info_of("gfx942"))
    with pytest.raises(Unsupported, match="no option fast"):
        compiler.compile(source, {"fast": 1})
    with pytest.raises(BackendError, match="no clang at"):
        compiler.compile(source, {"clang": "/nowhere/clang"})


def test_print_and_assert() -> None:
    @T.prim_func
    def said(A: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            for i in T.Parallel(64):
                A[i] = 1.0
            T.print(A[0])

    case = Case("said", lambda: said, frozenset(("float32",)))
    with pytest.raises(Unsupported, match="print") as caught:
        stages.emit(case, BACKEND, info_of("gfx942"))
    assert "TILE_INTERPRET" in str(caught.value.help)
