"""Calls on lavapipe: arrays of numpy and tensors of torch, buffers that are kept, grids of several dispatches, times, threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

import tile_core as tile
import tile_core.language as T
from tile_backend_webgpu.launcher.kernel import LIMIT, dispatches
from tile_backend_webgpu.launcher.session import Session, opened
from tile_core.hardware import Device


@pytest.fixture(autouse=True)
def on_webgpu(adapter: Device):
    with tile.target("webgpu"):
        yield


@tile.jit
def added(N, type="float32"):
    @T.prim_func
    def kernel(A: T.Tensor((N,), type), B: T.Tensor((N,), type)):
        with T.Kernel(T.ceildiv(N, 64), threads=64) as bx:
            for i in T.Parallel(64):
                if bx * 64 + i < N:
                    B[bx * 64 + i] = A[bx * 64 + i] + 1

    return kernel


@tile.jit(out_idx=[-1])
def copied(M, N, type):
    @T.prim_func
    def kernel(A: T.Tensor((M, N), type), B: T.Tensor((M, N), type)):
        with T.Kernel(T.ceildiv(M, 4), threads=64) as bx:
            tile = T.alloc_fragment((4, N), type)
            T.copy(A[bx * 4, 0], tile)
            T.copy(tile, B[bx * 4, 0])

    return kernel


@tile.jit
def summed_twice():
    """Two launches: the second reads what the first wrote, by a number and a dimension that each call may change."""
    n = T.dynamic("n")

    @T.prim_func
    def kernel(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32"), by: T.float32, flag: T.bool):
        with T.Kernel(T.ceildiv(n, 32), threads=32) as bx:
            for i in T.Parallel(32):
                if bx * 32 + i < n:
                    B[bx * 32 + i] = T.if_then_else(flag, A[bx * 32 + i] * by, 0)
        with T.Kernel(T.ceildiv(n, 32), threads=32) as bx:
            for i in T.Parallel(32):
                if bx * 32 + i < n:
                    B[bx * 32 + i] += A[n - 1 - (bx * 32 + i)]

    return kernel


@pytest.mark.parametrize(
    "type", ["float32", "float16", "bfloat16", "int8", "uint8", "int16", "uint16", "int32", "uint32", "bool"]
)
@pytest.mark.parametrize("shape", [(1, 1), (7, 33), (5, 3)])
def test_every_type_and_odd_sizes(type: str, shape: tuple[int, int]):
    x = torch.randint(0, 2 if type == "bool" else 120, shape).to(getattr(torch, type))
    got = copied(*shape, type)(x)
    assert isinstance(got, torch.Tensor)
    assert got.dtype == x.dtype
    assert torch.equal(got, x)


def test_numpy():
    x = np.random.default_rng(0).standard_normal((7, 33)).astype(np.float32)
    got = copied(7, 33, "float32")(x)
    assert isinstance(got, np.ndarray)
    np.testing.assert_array_equal(got, x)


def test_the_rest_of_a_written_tensor_stays():
    """Bytes behind the end are not touched, though copies are of whole words."""
    held = np.full(16, 7, np.int8)
    added(5, "int8")(np.arange(5, dtype=np.int8), held[:5])
    np.testing.assert_array_equal(held, [1, 2, 3, 4, 5] + [7] * 11)


def test_empty():
    added(0)(np.zeros(0, np.float32), np.zeros(0, np.float32))


def test_dimensions_and_numbers_of_each_call():
    kernel = summed_twice()
    for n, by, flag in ((1, 2.0, True), (100, -0.5, True), (33, 3.0, False)):
        a, b = np.arange(n, dtype=np.float32), np.empty(n, np.float32)
        kernel(a, b, by, flag)
        np.testing.assert_array_equal(b, (a * by if flag else 0) + a[::-1])


def test_buffers_are_kept(monkeypatch: pytest.MonkeyPatch):
    made: list[int] = []
    create = Session.buffer
    monkeypatch.setattr(
        Session, "buffer", lambda self, size, usage: made.append(size) or create(self, size, usage)
    )
    kernel, a, b = added(100), np.zeros(100, np.float32), np.zeros(100, np.float32)
    kernel(a, b)
    first = len(made)
    assert first
    for n in range(3):
        a[:] = n
        kernel(a, b)
        assert (b == n + 1).all()
    assert len(made) == first


def test_grid_of_several_dispatches():
    """More blocks than a dispatch may have along one axis."""
    n = (LIMIT + 3) * 64
    a, b = np.arange(n, dtype=np.float32) % 1000, np.zeros(n, np.float32)
    added(n)(a, b)
    np.testing.assert_array_equal(b, a + 1)


def test_dispatches():
    found = list(dispatches([(LIMIT + 1, 2), (0,), (3,)]))
    assert [(d.entry, d.first, d.count) for d in found] == [
        (0, (0, 0, 0), (LIMIT, 2, 1)),
        (0, (LIMIT, 0, 0), (1, 2, 1)),
        (2, (0, 0, 0), (3, 1, 1)),
    ]


def test_timer():
    samples = tile.bench(added(1000), np.zeros(1000, np.float32), np.zeros(1000, np.float32))
    assert samples.method == "timestamps of the device"
    assert 0 < samples.median < 1000


def test_threads():
    """Calls from several threads of a process do not mix."""
    kernel = added(1000)

    def call(n: int) -> bool:
        a, b = np.full(1000, n, np.float32), np.zeros(1000, np.float32)
        for _ in range(5):
            kernel(a, b)
        return bool((b == n + 1).all())

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(call, range(8)))


def test_export_and_load(tmp_path):
    loaded = tile.load(added(100).export(tmp_path / "out"))
    a, b = np.arange(100, dtype=np.float32), np.zeros(100, np.float32)
    loaded(a, b)
    np.testing.assert_array_equal(b, a + 1)


def test_subgroups_are_as_the_target_says(adapter: Device):
    assert opened(adapter.index).subgroup == 8


@pytest.mark.parametrize(("arch", "uses"), [("lavapipe", True), ("default", False)])
def test_subgroups_and_the_way_without(arch: str, uses: bool):
    """A sum over rows that several threads share: by exchanges in a subgroup, or through workgroup memory."""

    @T.prim_func
    def sums(A: T.Tensor((8, 64), "float32"), B: T.Tensor((8,), "float32")):
        with T.Kernel(1, threads=64):
            a = T.alloc_fragment((8, 64), "float32")
            b = T.alloc_fragment((8,), "float32")
            T.copy(A, a)
            T.reduce_sum(a, b, dim=1)
            T.copy(b, B)

    x = np.random.default_rng(0).integers(0, 9, (8, 64)).astype(np.float32)
    got = np.zeros(8, np.float32)
    kernel = tile.compile(sums, target=f"webgpu:{arch}")
    kernel(x, got)
    np.testing.assert_array_equal(got, x.sum(1))
    assert ("subgroupShuffle" in kernel.source) is uses
    assert ("var<workgroup>" in kernel.source) is not uses


@pytest.mark.parametrize(("type", "function"), [("int8", "dot4I8Packed"), ("uint8", "dot4U8Packed")])
def test_packed_dot(type: str, function: str):
    @T.prim_func
    def gemm(A: T.Tensor((32, 30), type), B: T.Tensor((32, 30), type), C: T.Tensor((32, 32), "int32")):
        with T.Kernel(1, threads=64):
            a = T.alloc_shared((32, 30), type)
            b = T.alloc_shared((32, 30), type)
            c = T.alloc_fragment((32, 32), "int32")
            T.copy(A, a)
            T.copy(B, b)
            T.clear(c)
            T.gemm(a, b, c, transpose_B=True)
            T.copy(c, C)

    info = np.iinfo(type)
    rng = np.random.default_rng(0)
    a, b = (rng.integers(info.min, info.max + 1, (32, 30)).astype(type) for _ in range(2))
    c = np.zeros((32, 32), np.int32)
    kernel = tile.compile(gemm)
    kernel(a, b, c)
    np.testing.assert_array_equal(c, a.astype(np.int32) @ b.T.astype(np.int32))
    assert function in kernel.source
