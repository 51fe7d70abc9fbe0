"""What cannot be done is refused by one clear error each, which names what would work."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import tile_core as tile
import tile_core.language as T
from tile_backend_webgpu import probe
from tile_backend_webgpu.launcher import launcher, session
from tile_core.errors import ArgumentError, BackendError, NoDevice, TileError, Unsupported
from tile_core.hardware import Device
from tile_core.registry import registry


@tile.jit
def doubled(N=64, type="float32", threads=64):
    @T.prim_func
    def kernel(A: T.Tensor((N,), type), B: T.Tensor((N,), type)):
        with T.Kernel(T.ceildiv(N, 64), threads=threads) as bx:
            for i in T.Parallel(64):
                if bx * 64 + i < N:
                    B[bx * 64 + i] = A[bx * 64 + i] + A[bx * 64 + i]

    return kernel


@tile.jit
def staged(rows):
    @T.prim_func
    def kernel(A: T.Tensor((rows, 64), "float32"), B: T.Tensor((64, rows), "float32")):
        with T.Kernel(1, threads=64):
            held = T.alloc_shared((rows, 64), "float32")
            T.copy(A, held)
            for i, j in T.Parallel(64, rows):
                B[i, j] = held[j, i]

    return kernel


def zeros(*shape: int, type: str = "float32") -> np.ndarray:
    return np.zeros(shape, type)


@pytest.fixture
def no_adapter(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As on a machine without any driver, or without the package."""
    monkeypatch.setattr(probe, "LIBRARY", "no_such_library")
    probe.adapters.cache_clear()
    session.opened.cache_clear()
    yield
    monkeypatch.undo()
    probe.adapters.cache_clear()
    session.opened.cache_clear()


def refused(error: type[TileError], call: Any, *words: str) -> None:
    with pytest.raises(error) as found:
        call()
    for word in words:
        assert word in str(found.value), str(found.value)


def test_no_adapter(no_adapter: None):
    with tile.target("webgpu"):
        refused(NoDevice, lambda: doubled()(zeros(64), zeros(64)), "pip install wgpu", "mesa-vulkan-drivers")
        assert "@compute" in doubled().compiled().source  # text is made all the same


@pytest.mark.parametrize("type", ["float64", "int64", "uint64", "float8_e4m3fn"])
def test_type(type: str):
    with tile.target("webgpu:lavapipe"):
        words = (f"A is {type}", "types that work", "float16", "float32")
        refused(Unsupported, lambda: doubled(type=type).compiled(), *words)


@pytest.mark.parametrize(
    ("arch", "rows", "grants", "others"),
    [("default", 128, 16384, "webgpu:lavapipe"), ("lavapipe", 192, 32768, "webgpu:nvidia")],
)
def test_too_much_workgroup_memory(arch: str, rows: int, grants: int, others: str):
    need = rows * 64 * 4
    with tile.target(f"webgpu:{arch}"):
        words = (f"needs {need} bytes", f"grants {grants}", f"held {need}", others)
        refused(Unsupported, lambda: staged(rows).compiled(), *words)


@pytest.mark.parametrize(("arch", "most"), [("default", 256), ("lavapipe", 1024)])
def test_too_many_threads(arch: str, most: int):
    with tile.target(f"webgpu:{arch}"):
        assert doubled(threads=most).compiled()
        refused(Unsupported, lambda: doubled(threads=2 * most).compiled(), f"threads={most}")


def test_too_many_tensors():
    @T.prim_func
    def sums(
        A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32"), C: T.Tensor((64,), "float32"),
        D: T.Tensor((64,), "float32"), E: T.Tensor((64,), "float32"), F: T.Tensor((64,), "float32"),
        G: T.Tensor((64,), "float32"), H: T.Tensor((64,), "float32"), I: T.Tensor((64,), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=64):
            for i in T.Parallel(64):
                I[i] = A[i] + B[i] + C[i] + D[i] + E[i] + F[i] + G[i] + H[i]

    refused(
        Unsupported,
        lambda: tile.compile(sums, target="webgpu:default").compiled(),
        "uses 9 tensors",
        "lets it use 8",
        "split",
    )
    assert tile.compile(sums, target="webgpu:lavapipe").compiled()


@pytest.fixture
def poor(adapter: Device, monkeypatch: pytest.MonkeyPatch) -> launcher.WebgpuLauncher:
    """A launcher whose adapter has no features."""
    device = SimpleNamespace(features=frozenset(), limits={})
    monkeypatch.setattr(launcher, "opened", lambda index: SimpleNamespace(device=device, subgroup=0))
    return launcher.WebgpuLauncher(Device(adapter.target, 0, "some adapter"))


@pytest.mark.parametrize(("type", "feature"), [("float16", "shader-f16"), ("sum", "subgroups")])
def test_missing_feature(poor: launcher.WebgpuLauncher, type: str, feature: str):
    """A kernel of a target with the feature, given to an adapter without."""

    @T.prim_func
    def sums(A: T.Tensor((8, 64), "float32"), B: T.Tensor((8,), "float32")):
        with T.Kernel(1, threads=64):
            a = T.alloc_fragment((8, 64), "float32")
            b = T.alloc_fragment((8,), "float32")
            T.copy(A, a)
            T.reduce_sum(a, b, dim=1)
            T.copy(b, B)

    kernel = tile.compile(sums, target="webgpu:apple") if type == "sum" else doubled(type=type)
    with tile.target("webgpu:apple"):
        made = kernel.compiled()
    refused(
        BackendError, lambda: poor.load(made.artifact, made.launch), feature, "some adapter", "webgpu:default"
    )


def test_kernel_of_another_adapter(adapter: Device):
    with tile.target("webgpu:apple"):
        call = lambda: doubled()(zeros(64), zeros(64))
        refused(BackendError, call, "compiled for webgpu:apple", "webgpu:lavapipe")


def test_text_that_the_driver_refuses(adapter: Device):
    with tile.target("webgpu"):
        made = doubled().compiled()
    loads = registry().get("webgpu").launcher(adapter).load
    refused(
        BackendError,
        lambda: loads(replace(made.artifact, data=b"fn main( {"), made.launch),
        "wgpu does not take",
    )


def test_tensor_beyond_a_binding(adapter: Device):
    n = 2**25 + 64
    with tile.target("webgpu"):
        call = lambda: doubled(n)(zeros(n), zeros(n))
        refused(ArgumentError, call, f"A has {4 * n} bytes", str(128 * 2**20), "split it")


def test_tensors_elsewhere(adapter: Device):
    given = torch.zeros(64, device="meta")
    with tile.target("webgpu"):
        refused(ArgumentError, lambda: doubled()(given, given), "meta", "'cpu'")


def test_tensors_that_share_memory(adapter: Device):
    @T.prim_func
    def both(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            for i in T.Parallel(64):
                A[i] = 1.0
                B[i] = 2.0

    held = zeros(96)
    kernel = tile.compile(both, target="webgpu:lavapipe")
    refused(ArgumentError, lambda: kernel(held[:64], held[32:]), "A and B share memory", "copy")


def test_order_between_atomics():
    @T.prim_func
    def counted(A: T.Tensor((1,), "int32")):
        with T.Kernel(1, threads=64):
            T.atomic_add(A[0], 1, memory_order="acq_rel")

    refused(Unsupported, lambda: tile.compile(counted, target="webgpu:default").compiled(), "relaxed")


def test_printing():
    @T.prim_func
    def told(A: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            for i in T.Parallel(64):
                A[i] = 0.0
            T.print(A[0])

    refused(
        Unsupported,
        lambda: tile.compile(told, target="webgpu:default").compiled(),
        "cannot print",
        "TILE_INTERPRET=1",
    )
