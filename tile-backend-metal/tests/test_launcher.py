"""The launcher on a Mac that is not there: what torch and Metal are asked, in which order, with which numbers."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_metal import FakeMetal, Launch
from fake_mps import FakeMps, tensor

import tile_core as tile
import tile_core.language as T
from tile_backend_metal.launcher import MetalLauncher, order
from tile_core.errors import ArgumentError, BackendError, NoDevice, Unsupported
from tile_core.hardware import Device, Target

TARGET = "metal:apple9"


def scaled() -> Any:
    """Two dimensions known at the launch, a scalar of each width."""
    m, n = T.dynamic("m, n")

    @T.prim_func
    def main(
        A: T.Tensor((m, n), "float32"), B: T.Tensor((m, n), "float32"), s: T.float32, k: T.int8, h: T.float16
    ):
        with T.Kernel(T.ceildiv(n, 32), m, threads=64) as (bx, by):
            for i in T.Parallel(32):
                if bx * 32 + i < n:
                    B[by, bx * 32 + i] = A[by, bx * 32 + i] * s + k + T.cast(h, "float32")

    return main


def product() -> Any:
    @T.prim_func
    def main(
        A: T.Tensor((16, 16), "float16"), B: T.Tensor((16, 16), "float16"), C: T.Tensor((16, 16), "float32")
    ):
        with T.Kernel(1, threads=32):
            a, b = T.alloc_shared((16, 16), "float16"), T.alloc_shared((16, 16), "float16")
            c = T.alloc_fragment((16, 16), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.gemm(a, b, c, clear_accum=True)
            T.copy(c, C)

    return main


def two_launches() -> Any:
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), C: T.Tensor((64,), "float32")):
        W = T.alloc_global((64,), "float32")
        with T.Kernel(2, threads=32) as bx:
            for i in T.Parallel(32):
                W[bx * 32 + i] = A[bx * 32 + i] + 1
        with T.Kernel(1, threads=64) as bx:
            for i in T.Parallel(64):
                C[i] = W[(i + 32) % 64]

    return main


# By PyObjC, for arrays of the host.


def test_arrays_go_to_buffers_and_come_back(backend: Any, metal: FakeMetal) -> None:
    def gpu(launch: Launch) -> None:
        launch.arguments[1].data[:] = np.full(200, 7, np.float32).tobytes()

    metal.gpu = gpu
    a, b = np.arange(200, dtype=np.float32).reshape(4, 50), np.zeros((4, 50), np.float32)
    tile.compile(scaled(), target=TARGET)(a, b, 1.5, -3, 0.5)
    (launch,) = metal.launches
    assert (launch.grid, launch.threads) == ((2, 4, 1), (64, 1, 1))
    assert bytes(launch.arguments[0].data) == a.tobytes()
    assert launch.arguments[2] == struct.pack("<f", 1.5)
    assert launch.arguments[3] == b"\xfd"
    assert launch.arguments[4] == struct.pack("<e", 0.5)
    assert [struct.unpack("<i", launch.arguments[n])[0] for n in (5, 6)] == [4, 50]
    assert (b == 7).all()
    assert metal.said == ["encode", "pipeline main_0", "dispatch", "end", "commit", "wait"]


def test_fast_math_is_off(backend: Any, metal: FakeMetal) -> None:
    a, b = np.zeros((4, 50), np.float32), np.zeros((4, 50), np.float32)
    tile.compile(scaled(), target=TARGET)(a, b, 1.0, 1, 1.0)
    assert metal.options == {"language": 3 << 16 | 1, "mode": 0, "functions": 1}
    metal.new, metal.options = False, {}
    tile.compile(scaled(), target="metal:apple7")(a, b, 1.0, 1, 1.0)
    assert metal.options == {"language": 3 << 16, "fast": False}


def test_one_buffer_for_an_array_that_is_passed_twice(backend: Any, metal: FakeMetal) -> None:
    a = np.zeros((4, 50), np.float32)
    tile.compile(scaled(), target=TARGET)(a, a, 1.0, 1, 1.0)
    (launch,) = metal.launches
    assert launch.arguments[0] == launch.arguments[1]
    assert launch.arguments[0].buffer is launch.arguments[1].buffer


def test_arrays_that_share_memory_share_a_buffer(backend: Any, metal: FakeMetal) -> None:
    """An update in place is not undone by the copy of the array that was only read."""

    def gpu(launch: Launch) -> None:
        launch.arguments[1].data[:800] = np.full(200, 7, np.float32).tobytes()

    metal.gpu = gpu
    memory = np.zeros(260, np.float32)
    a, b = memory[:200].reshape(4, 50), memory[40:240].reshape(4, 50)
    tile.compile(scaled(), target=TARGET)(a, b, 1.0, 1, 1.0)
    (launch,) = metal.launches
    assert launch.arguments[0].buffer is launch.arguments[1].buffer
    assert launch.arguments[1].offset - launch.arguments[0].offset == 160
    assert (b == 7).all()
    assert (memory[:40] == 0).all()
    assert (memory[240:] == 0).all()


def test_only_elements_of_an_array_are_written_back(backend: Any, metal: FakeMetal) -> None:
    """What lies between its rows, and arrays that may not be written, stay as they are."""
    n = T.dynamic("n")

    @T.prim_func
    def main(A: T.Tensor((4, 8), "float32"), B: T.StridedTensor((4, 8), (n, 1), "float32")):
        with T.Kernel(1, threads=32):
            T.copy(A, B)

    def gpu(launch: Launch) -> None:
        memory[:, 8:] = 1  # another thread of the host meanwhile
        for n in (0, 1):
            part = launch.arguments[n]
            part.data[:] = b"\x05" * len(part.data)

    metal.gpu = gpu
    memory = np.zeros((4, 12), np.float32)
    read = np.frombuffer(bytes(128), np.float32).reshape(4, 8)
    tile.compile(main, target=TARGET)(read, memory[:, :8])
    assert (memory[:, :8].view(np.uint32) == 0x05050505).all()
    assert (memory[:, 8:] == 1).all()
    assert (read == 0).all()


def test_launches_run_in_order_and_share_their_workspace(backend: Any, metal: FakeMetal) -> None:
    kernel = tile.compile(two_launches(), target=TARGET)
    kernel(np.zeros(64, np.float32), np.zeros(64, np.float32))
    first, second = metal.launches
    assert (first.entry, first.grid, first.threads) == ("main_0", (2, 1, 1), (32, 1, 1))
    assert (second.entry, second.grid, second.threads) == ("main_1", (1, 1, 1), (64, 1, 1))
    assert first.arguments[2].buffer is second.arguments[2].buffer
    assert len(first.arguments[2].data) == 256
    assert metal.said.count("commit") == 1


def test_nothing_runs_for_an_empty_grid(backend: Any, metal: FakeMetal) -> None:
    tile.compile(scaled(), target=TARGET)(
        np.zeros((0, 5), np.float32), np.zeros((0, 5), np.float32), 1.0, 1, 1.0
    )
    assert metal.launches == []


def test_the_order_of_matrices_is_compared_before_the_first_product(backend: Any, metal: FakeMetal) -> None:
    arrays = [np.zeros((16, 16), t) for t in (np.float16, np.float16, np.float32)]
    kernel = tile.compile(product(), target=TARGET)
    kernel(*arrays)
    kernel(*arrays)
    assert [launch.entry for launch in metal.launches] == [order.ENTRY, "main_0", "main_0"]
    metal.order = [0, *order.expected()[1:-1], 0]
    with pytest.raises(BackendError, match=r"Fake M4 holds the elements .* in another order") as told:
        tile.compile(product(), target="metal:apple8")(*arrays)
    assert "report" in str(told.value.help)


def test_what_metal_refuses(backend: Any, metal: FakeMetal) -> None:
    a, b = np.zeros((4, 50), np.float32), np.zeros((4, 50), np.float32)
    metal.refuse = "program_source:3:1: error"
    with pytest.raises(BackendError, match="Metal refuses the source: program_source:3:1"):
        tile.compile(scaled(), target=TARGET)(a, b, 1.0, 1, 1.0)
    metal.refuse, metal.most = "", 32
    with pytest.raises(Unsupported, match="64 threads in a block, the device can run 32"):
        tile.compile(scaled(), target=TARGET)(a, b, 1.0, 1, 1.0)
    assert metal.said == []  # no encoder is left open
    metal.most, metal.status = 1024, 5
    with pytest.raises(BackendError, match="failed on the device: GPU hang"):
        tile.compile(scaled(), target=TARGET)(a, b, 1.0, 1, 1.0)


def test_no_pyobjc(backend: Any) -> None:
    with pytest.raises(BackendError, match="cannot be reached from Python") as told:
        tile.compile(scaled(), target=TARGET)(
            np.zeros((4, 50), np.float32), np.zeros((4, 50), np.float32), 1.0, 1, 1.0
        )
    assert "pip install pyobjc-framework-Metal" in str(told.value.help)


# By torch, for its tensors on the GPU.


def test_tensors_are_passed_as_they_are(backend: Any, mps: FakeMps) -> None:
    a, b = tensor((4, 50)), tensor((4, 50))
    tile.compile(scaled(), target=TARGET)(a, b, 1.5, -3, 0.5)
    (call,) = mps.calls
    assert call.arguments[0] is a
    assert call.arguments[1] is b
    assert (call.threads, call.group) == ((128, 4, 1), (64, 1, 1))
    low = [value.to_bytes(8, "little", signed=True) for value in call.arguments[2:]]
    assert low[0][:4] == struct.pack("<f", 1.5)
    assert low[1][:1] == b"\xfd"
    assert low[2][:2] == struct.pack("<e", 0.5)
    assert [int.from_bytes(x[:4], "little") for x in low[3:]] == [4, 50]
    assert mps.waits == 0


def test_the_target_follows_from_the_tensors(backend: Any, mps: FakeMps) -> None:
    kernel = tile.compile(scaled())
    kernel(tensor((4, 50)), tensor((4, 50)), 1.5, -3, 0.5)
    assert str(kernel.target) == TARGET
    assert len(mps.sources) == 1


def test_workspaces_are_of_torch(backend: Any, mps: FakeMps) -> None:
    tile.compile(two_launches(), target=TARGET)(tensor(64), tensor(64))
    first, second = mps.calls
    assert first.arguments[2] is second.arguments[2]
    assert first.arguments[2].numel() == 256


def test_order_is_compared_by_torch_too(backend: Any, mps: FakeMps) -> None:
    tensors = tensor((16, 16), "float16"), tensor((16, 16), "float16"), tensor((16, 16))
    tile.compile(product(), target=TARGET)(*tensors)
    assert [c.entry for c in mps.calls] == [order.ENTRY, "main_0"]
    mps.order = [1] * len(mps.order)
    with pytest.raises(BackendError, match="in another order"):
        tile.compile(product(), target="metal:apple8")(*tensors)


def test_what_torch_refuses(backend: Any, mps: FakeMps) -> None:
    given = tensor((4, 50)), tensor((4, 50)), 1.0, 1, 1.0
    mps.refuse = "Failed to create metal library"
    with pytest.raises(BackendError, match=r"torch\.mps\.compile_shader fails: Failed to create") as told:
        tile.compile(scaled(), target=TARGET)(*given)
    assert "numpy" in str(told.value.help)
    mps.refuse, mps.most = "", 32
    with pytest.raises(Unsupported, match="64 threads in a block, the device can run 32"):
        tile.compile(scaled(), target=TARGET)(*given)
    del mps.mps.compile_shader
    with pytest.raises(BackendError, match=r"no torch\.mps\.compile_shader") as told:
        tile.compile(scaled(), target="metal:apple8")(*given)
    assert "update torch" in str(told.value.help)


def test_synchronize_waits_for_torch(backend: Any, mps: FakeMps) -> None:
    MetalLauncher(backend.device(0)).synchronize()
    assert mps.waits == 1


# Either way.


def test_a_bundle_runs_as_the_kernel(backend: Any, metal: FakeMetal, tmp_path: Path) -> None:
    folder = tile.compile(product(), target=TARGET).export(tmp_path / "product")
    tile.load(folder)(*(np.zeros((16, 16), t) for t in (np.float16, np.float16, np.float32)))
    assert [launch.entry for launch in metal.launches] == [order.ENTRY, "main_0"]


def test_an_older_family_runs_on_a_newer_device(backend: Any) -> None:
    assert backend.runs(Target("metal", "apple7"), backend.device(0))
    assert not backend.runs(Target("metal", "apple10"), backend.device(0))


def test_a_grid_that_metal_cannot_count(backend: Any, metal: FakeMetal) -> None:
    @T.prim_func
    def main(A: T.Tensor((1,), "float32")):
        with T.Kernel(2**27, threads=64) as bx:
            if bx == 0:
                A[0] = 1

    with pytest.raises(ArgumentError, match="134217728 x 1 x 1 blocks of 64 threads"):
        tile.compile(main, target=TARGET)(np.zeros(1, np.float32))


def test_an_address_is_no_tensor(backend: Any, metal: FakeMetal) -> None:
    @T.prim_func
    def main(P: T.ptr("float32"), B: T.Tensor((32,), "float32")):
        with T.Kernel(1, threads=32):
            T.copy(T.make_tensor(P, (32,), "float32"), B)

    b = np.zeros(32, np.float32)
    kernel = tile.compile(main, target=TARGET)
    kernel(np.zeros(32, np.float32), b)
    assert len(metal.launches) == 1
    with pytest.raises(ArgumentError, match="P is an address, and Metal passes none") as told:
        kernel(b.ctypes.data, b)
    assert "pass a tensor" in str(told.value.help)


def test_tensors_of_two_memories(backend: Any, mps: FakeMps, metal: FakeMetal) -> None:
    kernel = tile.compile(scaled(), target=TARGET)
    with pytest.raises(ArgumentError):
        kernel(tensor((4, 50)), np.zeros((4, 50), np.float32), 1.0, 1, 1.0)
    assert mps.calls == []
    assert metal.launches == []


def test_only_on_macos() -> None:
    with pytest.raises(NoDevice, match="on macOS only") as told:
        MetalLauncher(Device(Target("metal", "apple9"), 0, "none"))
    assert "run the bundle on a Mac" in str(told.value.help)


def test_calling_it_here_says_what_is_missing() -> None:
    with pytest.raises(NoDevice, match="Linux has no Metal"):
        tile.compile(product(), target=TARGET)(
            *(np.zeros((16, 16), t) for t in (np.float16, np.float16, np.float32))
        )
