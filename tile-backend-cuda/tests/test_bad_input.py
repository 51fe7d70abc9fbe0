"""What a kernel, a target or a machine may lack: one error that names what would work, or code that is right all the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from fake_driver import Fake
from written import add, tensors

import tile_core as tile
from tile_backend_cuda import probe
from tile_backend_cuda.backend import CudaBackend
from tile_backend_cuda.prelude.emulate import CudaEmulator
from tile_core import interpreter
from tile_core.errors import BackendError, NoDevice, Unsupported
from tile_core.hardware import Device, Target
from tile_core.inference.explain import explain
from tile_core.testing import arguments, machine, stages
from tile_core.testing.kernels import Case, gemm

CUDA = CudaBackend()
HALF = ("float16", "float32", "float32")


def info(arch: str, *options: tuple[str, str]) -> Any:
    return CUDA.info(Target("cuda", arch, options))


def product(types: tuple[str, str, str], block: tuple[int, int, int], **how: int) -> Case:
    return Case("product", lambda: gemm(512, 512, 512, block, types, **how), frozenset(types))


def emitted(case: Case, arch: str) -> Any:
    return stages.emit(case, CUDA, info(arch))


# Kernels.


def test_more_threads_than_a_block_has() -> None:
    with pytest.raises(Unsupported, match="at most 1024 threads, not 2048") as told:
        emitted(product(HALF, (64, 64, 32), threads=2048, stages=1), "sm_90a")
    assert told.value.span is not None and "threads=1024" in str(told.value.help)


@pytest.mark.parametrize(("arch", "most"), [("sm_80", 166912), ("sm_90a", 232448), ("sm_75", 65536)])
def test_more_shared_memory_than_a_block_has(arch: str, most: int) -> None:
    with pytest.raises(
        Unsupported, match=rf"needs \d+ bytes of shared memory, cuda:{arch} has {most}"
    ) as told:
        emitted(product(("float32",) * 3, (256, 256, 256), threads=256, stages=3), arch)
    assert told.value.span is not None and "smaller tiles" in str(told.value.help)


def test_more_registers_than_there_are_is_a_finding() -> None:
    case = product(HALF, (256, 256, 32), threads=128, stages=1)
    artifact = CUDA.compiler(info("sm_80")).compile(emitted(case, "sm_80"), {})
    (found,) = artifact.findings
    assert "spills registers" in found.message and "more threads" in found.remedy
    assert artifact.resources["spill_stores"] > 0


@pytest.mark.parametrize(
    ("types", "arch"),
    [
        (("float8_e4m3fn", "float32", "float32"), "sm_80"),
        (("bfloat16", "float32", "float32"), "sm_75"),
        (("float64", "float64", "float64"), "sm_103a"),
        (("float16", "float64", "float64"), "sm_90a"),
    ],
)
def test_types_without_a_matrix_instruction_are_multiplied_by_the_cores(types: Any, arch: str) -> None:
    """Right but slow, and the plan says so."""
    case = Case(
        "small",
        lambda: gemm(32, 32, 48, (32, 32, 16), types, threads=64, stages=1),
        frozenset(types),
        rtol=1e-2,
        atol=1e-2,
    )
    plan = stages.plan(case.program, CUDA, info(arch))
    assert f"no instruction of cuda:{arch} multiplies {types[0]}" in explain(plan)
    if machine.compiler_or_none() is None:
        pytest.skip("no C++ compiler for the machine emulator")
    made = arguments.made(case)
    wanted = arguments.copies(made)
    interpreter.run(case.program, wanted)
    for report in CudaEmulator().run(emitted(case, arch), made, {}, mode="late"):
        assert report.clean, str(report)
    arguments.compare(case, made, wanted)


def test_types_without_code() -> None:
    with pytest.raises(Unsupported, match="float4_e2m1fn: no code for that type on cuda:sm_100a") as told:
        emitted(product(("float4_e2m1fn", "float32", "float32"), (64, 64, 32), threads=128), "sm_100a")
    assert told.value.span is not None and "float8_e4m3fn" in str(told.value.help)


# Targets.


@pytest.mark.parametrize(
    ("target", "message", "remedy"),
    [
        ("cuda:sm_61", "no architecture 'sm_61'", "sm_70"),
        ("cuda:sm_90a,fastmath=1", "no option 'fastmath'", "fast_math"),
        ("cuda:sm_89,pdl=1", "no programmatic dependent launch", "sm_90a"),
    ],
)
def test_targets_that_are_none(target: str, message: str, remedy: str) -> None:
    with pytest.raises(Unsupported, match=message) as told:
        CUDA.info(Target.parse(target))
    assert remedy in str(told.value.help)


# Machines.


def test_no_driver(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "DRIVER", "libnothing.so.1")
    probe.devices.cache_clear()
    try:
        assert probe.devices() == ()
    finally:
        probe.devices.cache_clear()
    with pytest.raises(BackendError, match="the CUDA driver does not load") as told:
        type(fake.driver)("libnothing.so.1")
    assert "install the NVIDIA driver" in str(told.value.help)


def test_no_device(backend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = tile.compile(add, target="cuda:sm_90a")
    monkeypatch.setattr(backend, "devices", lambda: ())
    with pytest.raises(NoDevice, match="there is no cuda device 0 here") as told:
        kernel(*tensors())
    assert "tile doctor" in str(told.value.help)


@pytest.mark.parametrize("arch", ["sm_80", "sm_100a", "sm_91"])
def test_device_of_another_architecture(
    arch: str,
    backend: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = tile.compile(add, target="cuda:sm_90a").export(tmp_path / "add")
    monkeypatch.setattr(backend, "devices", lambda: (Device(Target("cuda", arch), 0, "Other"),))
    for kernel in (tile.load(folder), tile.compile(add, target="cuda:sm_90a")):
        with pytest.raises(
            BackendError, match=rf"for cuda:sm_90a, device 0 \(Other\) is cuda:{arch}"
        ) as told:
            kernel(*tensors())
        assert f"for cuda:{arch}" in str(told.value.help)


@pytest.mark.parametrize(
    ("arch", "device", "able"),
    [
        ("sm_80", "sm_80", True),
        ("sm_80", "sm_86", True),
        ("sm_80", "sm_89", True),
        ("sm_86", "sm_80", False),
        ("sm_80", "sm_90a", False),
        ("sm_90a", "sm_90a", True),
        ("sm_100a", "sm_103a", False),
        ("sm_120a", "sm_121", False),
        ("sm_75", "sm_70", False),
        ("sm_70", "sm_75", True),
    ],
)
def test_binary_compatibility(arch: str, device: str, able: bool) -> None:
    assert CUDA.runs(Target("cuda", arch), Device(Target("cuda", device), 0, "x")) is able


@pytest.mark.parametrize("code", [200, 209, 222])
def test_driver_that_cannot_read_the_binary(code: int, backend: Any, fake: Fake) -> None:
    kernel = tile.compile(add, target="cuda:sm_90a")
    fake.fail("cuLibraryLoadData", code)
    with pytest.raises(BackendError, match="cuLibraryLoadData") as told:
        kernel(*tensors())
    assert "the driver is of CUDA 13.0, Fake 0 is sm_90a" in str(told.value.why)
    assert told.value.help


def test_it_works_once_the_cause_is_gone(backend: Any, fake: Fake) -> None:
    kernel = tile.compile(add, target="cuda:sm_90a")
    fake.fail("cuLibraryLoadData", 222)
    a, b, c = tensors()
    with pytest.raises(BackendError, match="newer than the driver"):
        kernel(a, b, c)
    fake.fail("cuLibraryLoadData", 0)
    kernel(a, b, c)
    assert torch.equal(c, a + b)
