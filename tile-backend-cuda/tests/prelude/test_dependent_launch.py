"""Programmatic dependent launch: where kernels wait for the one before and let the next one begin, and what the launch is told."""

from __future__ import annotations

import re
from typing import Any

import elementwise_cases
import pytest
import update_cases

from tile_backend_cuda.backend import CudaBackend
from tile_backend_cuda.compiler import CudaCompiler
from tile_backend_cuda.launcher.outline import outline
from tile_backend_cuda.prelude.emulate import CudaEmulator
from tile_core import interpreter
from tile_core.errors import Unsupported
from tile_core.hardware import Target
from tile_core.testing import arguments, stages
from tile_core.testing.kernels import Case, gemm

BACKEND = CudaBackend()
HALF = ("float16", "float32", "float32")

CASES = {
    "copies": Case(
        "copies",
        lambda: elementwise_cases.through_shared(33, 104, 16, 40, 96, "float16", "float16"),
        frozenset(["float16"]),
        rtol=1e-2,
    ),
    "updates": Case(
        "updates", lambda: update_cases.tile_added(16, 64, 16, 64, 64, 2, "float32"), frozenset(["float32"])
    ),
    "product": Case(
        "product",
        lambda: gemm(128, 128, 96, (64, 64, 32), HALF, threads=128, stages=3),
        frozenset(HALF),
        rtol=2e-3,
        atol=2e-2,
    ),
    "two groups": Case(
        "two groups",
        lambda: gemm(136, 72, 200, (128, 64, 64), HALF, threads=256, stages=3),
        frozenset(HALF),
        rtol=2e-3,
        atol=3e-2,
    ),
}


def info_for(arch: str, *options: tuple[str, str]) -> Any:
    return BACKEND.info(Target("cuda", arch, options))


@pytest.mark.parametrize("arch", ["sm_90a", "sm_100a", "sm_120a"])
@pytest.mark.parametrize("name", CASES)
def test_kernels_wait_and_are_right(name: str, arch: str, emulator: None):
    case = CASES[name]
    source = stages.emit(case, BACKEND, info_for(arch, ("pdl", "1")))
    for kernel in source.text.split('extern "C"')[1:]:
        assert "griddep_wait();" in kernel
        for role in kernel.split("griddep_wait();")[:1]:
            assert not re.search(r"[ABC]\[\(long long\)|tma_(load|store)|fetch_|cp_async", role)
    assert source.launch.extra["pdl"] == dict.fromkeys((e[0] for e in source.launch.entries), True)
    made = arguments.made(case)
    wanted = arguments.copies(made)
    interpreter.run(case.program, wanted)
    for report in CudaEmulator().run(source, made, {}, mode="random"):
        assert report.clean, str(report)
    arguments.compare(case, made, wanted)


def test_every_role_waits_and_the_next_launch_begins_after_the_loop():
    source = stages.emit(CASES["two groups"], BACKEND, info_for("sm_90a", ("pdl", "1")))
    kernel = source.text.split('extern "C"')[1]
    assert kernel.count("griddep_wait();") == 2 and kernel.count("griddep_launch();") == 1
    before, between, after = kernel.split("griddep_wait();")
    assert (
        "tma_" not in before and "tma_load_2d" in between
    )  # the role that copies waits before its first copy
    assert "tma_store_2d" not in between and "tma_store_2d" in after  # the others before they write
    assert kernel.index("griddep_launch();") > kernel.rindex("wgmma_m64")


def test_only_when_it_is_asked_for():
    source = stages.emit(CASES["product"], BACKEND, info_for("sm_90a"))
    assert "griddep" not in source.text and "pdl" not in source.launch.extra


def test_the_launch_has_the_attribute():
    source = stages.emit(CASES["product"], BACKEND, info_for("sm_90a", ("pdl", "1")))
    assert all(entry.pdl for entry in outline(source.launch).entries)


def test_older_architectures_refuse():
    with pytest.raises(Unsupported, match="no programmatic dependent launch") as told:
        info_for("sm_80", ("pdl", "1"))
    assert "sm_90a" in str(told.value.help)


def test_an_option_of_the_target_alone():
    info = info_for("sm_90a")
    source = stages.emit(CASES["updates"], BACKEND, info)
    with pytest.raises(Unsupported, match="pdl") as told:
        CudaCompiler(info).compile(source, {"pdl": True})
    assert "cuda:sm_90a,pdl=1" in str(told.value.help)
