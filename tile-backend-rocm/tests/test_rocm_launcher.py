"""The launcher on the fake runtime: what reaches HIP, devices, streams, workspaces and failures."""

from __future__ import annotations

import struct
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from fake_hip import Fake

from tile_backend_rocm.launcher.runtime import Runtime
from tile_core.backend import Artifact, LaunchParam, LaunchSpec
from tile_core.errors import ArgumentError, BackendError, InternalError, NoDevice

HSACO = Artifact("hsaco", b"\x7fELF")
DIM = LaunchParam("N", "dim", "int32")


def tensor(name: str, dtype: str = "float32") -> LaunchParam:
    return LaunchParam(name, "tensor", dtype, ("N",))


def launch(
    *params: LaunchParam, entry: str, grid: Any = (1,), threads: Any = (256,), **extra: Any
) -> LaunchSpec:
    return LaunchSpec(params, ((entry, grid, threads),), extra=extra)


ADD = launch(tensor("A"), tensor("B"), tensor("C"), DIM, entry="add", grid=("(N + 255) // 256",))
NOTHING = launch(tensor("A"), DIM, entry="nothing", grid=("N",))


def address(array: np.ndarray) -> int:
    return array.ctypes.data


def test_values_reach_the_kernel(fake: Fake) -> None:
    a, b, c = (np.random.default_rng(n).random(300, np.float32) for n in range(3))
    fake.launcher().load(HSACO, ADD)((*map(address, (a, b, c)), 300), ((2,),), 77)
    np.testing.assert_array_equal(c, a + b)
    seen = fake.seen
    assert (tuple(seen.grid), tuple(seen.block)) == ((2, 1, 1), (256, 1, 1))
    assert (seen.stream, seen.shared, seen.launches) == (77, 0, 1)


def test_scalars_in_their_own_types(fake: Fake) -> None:
    kinds = ("int8", "uint16", "int32", "int64", "float32", "float64", "float16", "bool")
    scalars = [LaunchParam(f"s{n}", "scalar", k) for n, k in enumerate(kinds)]
    params = (tensor("out", "int64"), *scalars, LaunchParam("p", "pointer", "handle"), DIM)
    out = np.zeros(10, np.int64)
    values = (address(out), -3, 65535, -70000, -(2**40), 1.5, 2.25, 0.1, True, 2**63 + 5, 10)
    fake.launcher().load(HSACO, launch(*params, entry="scalars"))(values, ((1,),), 0)
    wanted = struct.pack("<b7xH6xi4xqf4xd", *values[1:7])
    wanted += np.float16(0.1).tobytes() + bytes(6) + struct.pack("<?7xQi4x", True, 2**63 + 5, 10)
    assert out.tobytes() == wanted


def test_the_kernels_own_device(fake: Fake) -> None:
    """The thread's current device is another one; afterwards it is what it was."""
    x = np.zeros(1, np.float32)
    for index in range(2):
        kernel = fake.launcher(index).load(HSACO, NOTHING)
        fake.runtime("hipSetDevice", 1 - index)
        kernel((address(x), 1), ((1,),), 0)
        assert fake.seen.device == index
        with fake.runtime.current(1 - index):
            before = fake.seen.set_device
        assert fake.seen.set_device == before


def test_grids_with_a_zero_are_not_launched(fake: Fake) -> None:
    kernel = fake.launcher().load(HSACO, NOTHING)
    kernel((0, 0), ((0,),), 0)
    kernel((0, 5), ((5, 0),), 0)
    assert fake.seen.launches == 0


@pytest.mark.parametrize("grid", [(2**31,), (2**24,), (1, 2**32)])
def test_grids_that_no_device_runs(fake: Fake, grid: tuple[int, ...]) -> None:
    with pytest.raises(ArgumentError, match="has a grid of") as caught:
        fake.launcher().load(HSACO, NOTHING)((0, 1), (grid,), 0)
    assert "larger tiles" in str(caught.value.help)
    assert fake.seen.launches == 0


def test_workspaces(fake: Fake) -> None:
    spec = launch(tensor("A"), DIM, entry="fill", workspaces=((("N", 2), 4),))
    a = np.zeros(8, np.float32)
    fake.launcher().load(HSACO, spec)((address(a), 8), ((1,),), 5)
    assert a.tolist() == [3.0] * 8
    assert (fake.seen.allocations, fake.seen.releases, fake.seen.stream) == (1, 1, 5)
    fake.fail("hipModuleLaunchKernel", 719)
    with pytest.raises(BackendError):
        fake.launcher().load(HSACO, spec)((address(a), 8), ((1,),), 5)
    assert (fake.seen.allocations, fake.seen.releases) == (2, 2)


def test_current_stream_of_torch(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = SimpleNamespace(_cuda_getCurrentRawStream=lambda index: 100 + index)
    cuda = SimpleNamespace(is_initialized=lambda: True)
    torch = SimpleNamespace(version=SimpleNamespace(hip="6.4"), cuda=cuda, _C=raw)
    monkeypatch.setitem(sys.modules, "torch", torch)
    assert fake.launcher(1).current_stream() == 101
    fake.launcher(1).load(HSACO, NOTHING)((0, 1), ((1,),))
    assert fake.seen.stream == 101
    torch.version.hip = None  # a torch of another vendor
    assert fake.launcher(1).current_stream() == 0
    monkeypatch.delitem(sys.modules, "torch")
    assert fake.launcher(1).current_stream() == 0


def test_wrong_kind_of_artifact(fake: Fake) -> None:
    with pytest.raises(InternalError, match="this is cubin"):
        fake.launcher().load(Artifact("cubin", b""), ADD)


def test_another_architectures_code(fake: Fake) -> None:
    fake.fail("hipModuleLoadData", 209)
    with pytest.raises(BackendError, match=r"no kernel image.*HIP error 209") as caught:
        fake.launcher().load(HSACO, ADD)
    assert "Fake 0 is gfx942" in str(caught.value.why)
    assert "tile devices" in str(caught.value.help)


def test_no_device(fake: Fake) -> None:
    fake.fail("hipInit", 100)
    with pytest.raises(NoDevice, match="HIP error 100") as caught:
        Runtime((str(fake.path),))
    assert "HIP_VISIBLE_DEVICES" in str(caught.value.help)


def test_no_library() -> None:
    with pytest.raises(BackendError, match="does not load") as caught:
        Runtime(("libno-such-hip.so.9",))
    assert "install ROCm" in str(caught.value.help)


def test_a_function_that_is_missing(fake: Fake) -> None:
    with pytest.raises(BackendError, match="has no hipNoSuchThing"):
        fake.runtime("hipNoSuchThing")


def test_synchronize(fake: Fake) -> None:
    fake.launcher(1).synchronize()
    fake.fail("hipDeviceSynchronize", 700)
    with pytest.raises(BackendError, match="hipDeviceSynchronize") as caught:
        fake.launcher(1).synchronize()
    assert "interpreter" in str(caught.value.help)
