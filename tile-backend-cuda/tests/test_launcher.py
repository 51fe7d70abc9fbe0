"""Both launchers on the fake driver: what reaches the driver, contexts, streams, maps, workspaces, threads and failures."""

from __future__ import annotations

import struct
import threading
import time

import numpy as np
import pytest
import torch
from fake_driver import CONTEXT, Fake

from tile_backend_cuda.launcher import CudaLauncher
from tile_core.backend import Artifact, LaunchParam, LaunchSpec
from tile_core.errors import ArgumentError, BackendError, InternalError, NoDevice, Unsupported

CUBIN = Artifact("cubin", b"\x7fELF")
DIM = LaunchParam("N", "dim", "int32")


def tensor(name: str, shape=("N",), dtype="float32", **more) -> LaunchParam:
    return LaunchParam(name, "tensor", dtype, shape, **more)


def launch(*params: LaunchParam, entry="step", grid=(1,), threads=(128,), **extra) -> LaunchSpec:
    return LaunchSpec(params, ((entry, grid, threads),), extra=extra)


ADD = launch(tensor("A"), tensor("B"), tensor("C"), DIM, entry="add", grid=("(N + 127) // 128",))


def pointers(*tensors: torch.Tensor) -> tuple[int, ...]:
    return tuple(t.data_ptr() for t in tensors)


def test_values_reach_the_kernel(fake: Fake, how: str) -> None:
    a, b, c = torch.randn(300), torch.randn(300), torch.zeros(300)
    kernel = fake.launcher(how).load(CUBIN, ADD)
    kernel((*pointers(a, b, c), 300), ((3,),), 77)
    assert torch.equal(c, a + b)
    seen = fake.seen
    assert (tuple(seen.grid), tuple(seen.block)) == ((3, 1, 1), (128, 1, 1))
    assert (seen.stream, seen.shared, seen.count) == (77, 0, 0)


def test_attributes_of_a_launch(fake: Fake, how: str) -> None:
    spec = launch(
        tensor("A"),
        DIM,
        grid=(4, 2),
        threads=(64, 2),
        shared={"step": 100_000},
        cluster={"step": [2, 1, 1]},
        pdl={"step": True},
        cooperative={"step": True},
    )
    x = torch.zeros(1)
    fake.launcher(how).load(CUBIN, spec)((x.data_ptr(), 1), ((4, 2),), 5)
    seen = fake.seen
    assert tuple(seen.grid) == (4, 2, 1)
    assert tuple(seen.block) == (64, 2, 1)
    assert seen.shared == 100_000  # over 48 KiB: the attribute was set when it was loaded
    assert [tuple(seen.attributes[i]) for i in range(3)] == [(4, 2, 1, 1), (6, 1, 0, 0), (2, 1, 0, 0)]


def test_scalars_in_their_own_types(fake: Fake, how: str) -> None:
    kinds = ("int8", "uint16", "int32", "int64", "float32", "float64", "float16", "bool")
    scalars = [LaunchParam(f"s{n}", "scalar", k) for n, k in enumerate(kinds)]
    params = (tensor("out", dtype="int64"), *scalars, LaunchParam("p", "pointer", "handle"), DIM)
    out = torch.zeros(10, dtype=torch.int64)
    values = (out.data_ptr(), -3, 65535, -70000, -(2**40), 1.5, 2.25, 0.1, True, 2**63 + 5, 10)
    fake.launcher(how).load(CUBIN, launch(*params, entry="scalars"))(values, ((1,),), 5)
    bits = [int(v) % 2**64 for v in out]
    wanted = struct.pack("<b7xH6xi4xq", -3, 65535, -70000, -(2**40))
    assert bits[:4] == list(struct.unpack("<4Q", wanted))
    assert bits[4:6] == list(struct.unpack("<2Q", struct.pack("<f4xd", 1.5, 2.25)))
    assert bits[6:] == [int(np.float16(0.1).view(np.uint16)), 1, 2**63 + 5, 10]


def test_null_stream_goes_to_the_kernels_own_device(fake: Fake, how: str) -> None:
    """The thread's context is another one, or none; afterwards it is what it was."""
    x = torch.zeros(1)
    for index in range(2):
        kernel = fake.launcher(how, index).load(CUBIN, launch(tensor("A"), DIM))
        fake.driver("cuCtxSetCurrent", None)
        kernel((x.data_ptr(), 1), ((1,),), 0)
        assert fake.seen.context == CONTEXT + index
        assert _current(fake) is None
        fake.driver("cuCtxSetCurrent", CONTEXT + 1 - index)
        kernel((x.data_ptr(), 1), ((1,),), 0)
        assert fake.seen.context == CONTEXT + index
        assert _current(fake) == CONTEXT + 1 - index
    assert x.item() == 4


def _current(fake: Fake):
    import ctypes

    found = ctypes.c_void_p()
    fake.driver("cuCtxGetCurrent", ctypes.byref(found))
    return found.value


def test_grids_with_a_zero_are_not_launched(fake: Fake, how: str) -> None:
    spec = LaunchSpec(
        (tensor("A"), DIM), (("step", ("N",), (32,)), ("step", ("N + 1",), (32,)), ("step", (0,), (32,)))
    )
    x = torch.zeros(1)
    fake.launcher(how).load(CUBIN, spec)((x.data_ptr(), 0), ((0,), (1,), (0,)), 5)
    assert (x.item(), fake.seen.launches) == (1, 1)


def test_conditions_choose_between_entries(fake: Fake, how: str) -> None:
    spec = LaunchSpec(
        (tensor("A"), DIM),
        (("add", (1,), (32,)), ("step", (7,), (32,))),
        extra={"when": {"add": "A % 16 == 0 and N > 100", "step": "A % 16 != 0 or_not"}},
    )
    with pytest.raises(InternalError, match="launch specification is wrong"):
        fake.launcher(how).load(CUBIN, spec)
    spec = LaunchSpec(
        spec.params,
        (("nothing", (5,), (32,)), ("step", (7,), (32,))),
        extra={"when": {"nothing": "A % 16 == 0", "step": "A % 16 != 0"}},
    )
    kernel = fake.launcher(how).load(CUBIN, spec)
    x = torch.zeros(64)
    for offset, grid in ((0, 5), (1, 7), (4, 5), (6, 7)):
        kernel((x[offset:].data_ptr(), 1), ((5,), (7,)), 5)
        assert fake.seen.grid[0] == grid
    assert fake.seen.launches == 4


MAP = {
    "name": "A_map",
    "of": "A",
    "dtype": "float16",
    "dims": ["K", "M"],
    "strides": ["K * 2"],
    "box": [64, 128],
    "swizzle": 128,
    "promotion": 256,
    "fill": "nan",
}
MAPPED = launch(
    tensor("A", ("M", "K"), "float16"),
    tensor("out", (15,), "int64"),
    LaunchParam("M", "dim", "int32"),
    LaunchParam("K", "dim", "int32"),
    entry="mapped",
    tensor_maps=[MAP],
    parameters={"mapped": ["A_map", "out"]},
)


def test_tensor_maps(fake: Fake, how: str) -> None:
    kernel = fake.launcher(how).load(CUBIN, MAPPED)
    a, out = torch.zeros(96, 64, dtype=torch.float16), torch.zeros(15, dtype=torch.int64)
    kernel((*pointers(a, out), 96, 64), ((1,),), 5)
    assert out.tolist() == [a.data_ptr(), 2, 64, 96, 0, 0, 128, 0, 64, 128, 0, 6, 3, 3, 1]


def test_tensor_maps_are_remembered_by_address_and_extents(fake: Fake, how: str) -> None:
    kernel = fake.launcher(how).load(CUBIN, MAPPED)
    buffers = [torch.zeros(64 * 64, dtype=torch.float16) for _ in range(5)]
    out = torch.zeros(15, dtype=torch.int64)

    def encodes(buffer: torch.Tensor, m: int, k: int) -> int:
        before = fake.seen.encodes
        kernel((*pointers(buffer, out), m, k), ((1,),), 5)
        assert out.tolist()[:4] == [buffer.data_ptr(), 2, k, m]
        return fake.seen.encodes - before

    assert [encodes(b, 64, 64) for b in buffers[:4]] == [1] * 4
    assert [encodes(b, 64, 64) for b in buffers[:4]] == [0] * 4
    assert encodes(buffers[0], 32, 64) == 1
    assert encodes(buffers[0], 64, 32) == 1
    assert encodes(buffers[3], 64, 64) == 0
    assert encodes(buffers[4], 64, 64) == 1


def test_tensor_map_that_the_copy_engine_cannot_have(fake: Fake, how: str) -> None:
    kernel = fake.launcher(how).load(CUBIN, MAPPED)
    a, out = torch.zeros(5000, dtype=torch.float16), torch.zeros(15, dtype=torch.int64)
    for address, k in ((a.data_ptr() + 2, 64), (a.data_ptr(), 33)):
        with pytest.raises(ArgumentError, match="multiples of 16 bytes"):
            kernel((address, out.data_ptr(), 64, k), ((1,),), 5)
    kernel((a.data_ptr(), out.data_ptr(), 64, 64), ((1,),), 5)
    kernel((0, out.data_ptr(), 64, 0), ((1,),), 5)  # a tensor without elements: a map of zeros
    assert out.tolist() == [0] * 15


def test_workspaces(fake: Fake, how: str) -> None:
    out = torch.zeros(1, dtype=torch.int32)
    spec = launch(
        tensor("out", dtype="int32"),
        DIM,
        entry="scratch",
        workspaces=[[["N", 8], 4]],
        parameters={"scratch": ["out", "workspace0"]},
    )
    fake.launcher(how).load(CUBIN, spec)((out.data_ptr(), 1), ((1,),), 5)
    assert out.item() == 28
    assert (fake.seen.allocations, fake.seen.releases) == (1, 1)
    fake.fail("cuLaunchKernelEx", 700)
    with pytest.raises(BackendError, match="accessed memory it may not"):
        fake.launcher(how).load(CUBIN, spec)((out.data_ptr(), 1), ((1,),), 5)
    assert fake.seen.releases == 2
    fake.fail("cuMemAllocAsync", 2)
    with pytest.raises(BackendError, match="cuMemAllocAsync: out of memory"):
        fake.launcher(how).load(CUBIN, spec)((out.data_ptr(), 1), ((1,),), 5)
    assert fake.seen.releases == 2


WORKSPACE = launch(
    tensor("out", (15,), "int64"),
    DIM,
    entry="mapped",
    workspaces=[[["N", 8], 4]],
    tensor_maps=[
        {
            "name": "sums_map",
            "of": "workspace0",
            "dtype": "float32",
            "dims": [8, "N"],
            "strides": [32],
            "box": [8, 16],
        }
    ],
    parameters={"mapped": ["sums_map", "out"]},
)


def test_tensor_map_of_a_workspace(fake: Fake, how: str) -> None:
    kernel = fake.launcher(how).load(CUBIN, WORKSPACE)
    for n in (16, 48):
        out = torch.zeros(15, dtype=torch.int64)
        kernel((out.data_ptr(), n), ((1,),), 5)
        assert out[0].item() != 0
        assert out.tolist()[1:] == [2, 8, n, 0, 0, 32, 0, 8, 16, 0, 7, 0, 0, 0]
    assert fake.seen.allocations == fake.seen.releases == 2


def test_tensor_map_of_a_workspace_that_the_driver_refuses(fake: Fake, how: str) -> None:
    kernel = fake.launcher(how).load(CUBIN, WORKSPACE)
    out = torch.zeros(15, dtype=torch.int64)
    fake.fail("cuTensorMapEncodeTiled", 1)
    with pytest.raises(Exception, match="16 bytes"):
        kernel((out.data_ptr(), 16), ((1,),), 5)
    assert fake.seen.allocations == fake.seen.releases  # nothing is left behind
    skipped = LaunchSpec(
        WORKSPACE.params, WORKSPACE.entries, extra={**WORKSPACE.extra, "when": {"mapped": "N > 99"}}
    )
    before = fake.seen.encodes
    fake.launcher(how).load(CUBIN, skipped)((out.data_ptr(), 16), ((1,),), 5)
    assert fake.seen.encodes == before  # made only for what is launched


@pytest.mark.parametrize(
    ("function", "code", "error", "message"),
    [
        ("cuLibraryLoadData", 209, BackendError, "another architecture"),
        ("cuLibraryLoadData", 222, BackendError, "newer than the driver"),
        ("cuLibraryLoadData", 200, BackendError, "not valid"),
        ("cuLibraryGetKernel", 500, InternalError, "not found"),
        ("cuDevicePrimaryCtxRetain", 2, BackendError, "out of memory"),
        ("cuDeviceGet", 101, NoDevice, "no such device"),
        ("cuLaunchKernelEx", 701, BackendError, "more registers, threads or shared memory"),
        ("cuLaunchKernelEx", 719, BackendError, "an earlier kernel failed"),
        ("cuLaunchKernelEx", 9999, BackendError, "unknown error"),
    ],
)
def test_failures_say_what_they_mean(
    fake: Fake, how: str, function: str, code: int, error: type[Exception], message: str
) -> None:
    fake.driver._contexts.clear()
    fake.fail(function, code)
    x = torch.zeros(1)
    with pytest.raises(error, match=message):
        fake.launcher(how).load(CUBIN, launch(tensor("A"), DIM))((x.data_ptr(), 1), ((1,),), 5)


def test_more_than_the_device_has(fake: Fake, how: str) -> None:
    fake.library.fake_kernel(512, 128, 1000)
    with pytest.raises(Unsupported, match=r"step needs 301000 bytes of shared memory .* Fake 0 has 232448"):
        fake.launcher(how).load(CUBIN, launch(tensor("A"), DIM, shared={"step": 300_000}))
    with pytest.raises(Unsupported, match="step runs 1024 threads in a block, Fake 0 can run 512"):
        fake.launcher(how).load(CUBIN, launch(tensor("A"), DIM, threads=(1024,)))
    kernel = fake.launcher(how).load(CUBIN, launch(tensor("A"), DIM))
    with pytest.raises(ArgumentError, match="1 x 65536 blocks"):
        kernel((16, 1), ((1, 65536),), 5)
    with pytest.raises(InternalError, match="loads cubins"):
        fake.launcher(how).load(Artifact("object", b""), launch(tensor("A"), DIM))


def test_driver_without_a_function(fake: Fake) -> None:
    with pytest.raises(BackendError, match=r"the CUDA driver 13\.0 has no cuNothing"):
        fake.driver("cuNothing")
    with pytest.raises(BackendError, match="does not load"):
        type(fake.driver)("libnothing.so.1")


def test_threads_share_a_kernel(fake: Fake, how: str) -> None:
    kernel = fake.launcher(how).load(CUBIN, MAPPED)
    wrong: list[object] = []

    def work(n: int) -> None:
        a, out = torch.zeros(64, 64, dtype=torch.float16), torch.zeros(15, dtype=torch.int64)
        for m in range(1, 65):
            kernel((*pointers(a, out), m, 64), ((1,),), 5 if n % 2 else 0)
            if out.tolist()[:4] != [a.data_ptr(), 2, 64, m]:
                wrong.append((n, m))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
    assert fake.seen.launches == 8 * 64


def test_other_threads_run_while_the_driver_waits(fake: Fake, how: str) -> None:
    kernel = fake.launcher(how).load(CUBIN, launch(tensor("A"), DIM))
    fake.library.fake_delay(200_000)
    x, ticks, done = torch.zeros(1), 0, threading.Event()

    def work() -> None:
        kernel((x.data_ptr(), 1), ((1,),), 5)
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    while not done.is_set():
        time.sleep(0.002)
        ticks += 1
    thread.join()
    assert ticks > 10


def test_synchronize_and_stream(fake: Fake, how: str) -> None:
    launcher: CudaLauncher = fake.launcher(how)
    launcher.synchronize()
    assert launcher.current_stream() == 0
