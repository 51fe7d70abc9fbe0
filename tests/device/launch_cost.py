"""What a warm launch costs: a bare loop in C, tile's paths, and torch's own operation, interleaved in random order."""

from __future__ import annotations

import ctypes
import itertools
import random
import statistics
import time
from collections.abc import Callable
from typing import Any

ROUNDS, LAUNCHES = 60, 200  # 12000 of each path; the queue holds 1021


class Bare:
    """``cuLaunchKernelEx`` with everything prepared, in a loop in C."""

    def __init__(self, folder: Any, kernel: Any, given: tuple[int, ...]) -> None:
        from tile_backend_cuda.launcher.portable import Attribute, Config

        entry, values = kernel.outline.entries[0], given
        self.loop = ctypes.CDLL(str(folder / "bare.so")).bare
        self.loop.restype = ctypes.c_double
        self.driver = kernel.launcher.driver
        self.function = kernel.functions[0]
        held = [ctypes.c_uint64(v) for v in values]
        maps = {n: m.encoded(values) for n, m in enumerate(_maps(kernel))}
        self.held = [maps[n] if source == "m" else held[n] for source, n in entry.passed]
        self.parameters = (ctypes.c_void_p * len(self.held))(*(ctypes.addressof(h) for h in self.held))
        self.attributes = (Attribute * 0)()
        self.config = Config(
            (ctypes.c_uint * 3)(1, 1, 1), (ctypes.c_uint * 3)(*entry.block), 0, None, self.attributes, 0
        )

    def __call__(self, count: int) -> float:
        error = ctypes.c_int()
        launch = ctypes.cast(self.driver.function("cuLaunchKernelEx"), ctypes.c_void_p)
        function = ctypes.c_void_p(self.function)
        with self.driver.current(0):
            spent = self.loop(
                launch, ctypes.byref(self.config), function, self.parameters, count, ctypes.byref(error)
            )
        assert error.value == 0, error.value
        return spent


def _maps(kernel: Any) -> list[Any]:
    from tile_backend_cuda.launcher.portable import _Maps

    return [_Maps(kernel.launcher.driver, m) for m in kernel.outline.maps]


def looped(call: str, **names: Any) -> Callable[[int], float]:
    """Seconds of so many calls, which stand in the loop as a user writes them."""
    text = f"def measure(count):\n begin = clock()\n for _ in repeat(None, count):\n  {call}\n return clock() - begin\n"
    found: dict[str, Any] = {"clock": time.perf_counter, "repeat": itertools.repeat, **names}
    exec(text, found)
    return found["measure"]


def kernel_object(bundle: Any) -> Any:
    """A ``Kernel``, whose target each call chooses, around what the bundle holds."""
    from tile_core.runtime import Kernel
    from tile_core.runtime.targeted import Request, TargetKernel

    def no_program() -> Any:
        raise AssertionError("nothing is compiled here")

    kernel = Kernel(Request(bundle.name, no_program, ""))
    made = kernel._targets[bundle.target] = TargetKernel(kernel.request, bundle.target)
    made._entry = bundle._kernel.entry
    return kernel


def paths(s: Any) -> dict[str, Callable[[int], float]]:
    """Measured callables by name: seconds of a number of launches."""
    torch = s.torch
    a, b, c = (torch.zeros(256, 256, dtype=torch.bfloat16, device=s.device) for _ in range(3))
    plain, maps, portable = s.load("empty"), s.load("empty_maps"), s.load("empty")
    from tile_backend_cuda.launcher import CudaLauncher

    launcher = CudaLauncher(plain.backend.device(0), portable=True)
    portable._kernel._loaded[0] = launcher.load(portable.artifact, portable.launch)
    of_kernel = kernel_object(plain)
    for run in (plain, maps, portable, of_kernel):
        run(a, b, c)
    values = (a.data_ptr(), b.data_ptr(), c.data_ptr(), 256, 256, 256)
    native = plain._kernel.loaded(0)
    tensors = {"a": a, "b": b, "c": c}
    given, stream = (a, b, c), torch.cuda.Stream().cuda_stream
    return {
        "bare": Bare(s.folder, native, values),
        "bare, maps": Bare(s.folder, maps._kernel.loaded(0), values),
        "bundle": looped("run(a, b, c)", run=plain, **tensors),
        "bundle, maps": looped("run(a, b, c)", run=maps, **tensors),
        "bundle, stream given": looped("run(a, b, c, stream=stream)", run=plain, stream=stream, **tensors),
        "kernel": looped("run(a, b, c)", run=of_kernel, **tensors),
        "native call alone": looped("run(given, None)", run=native.call, given=given),
        "ctypes": looped("run(a, b, c)", run=portable, **tensors),
        "torch.add(out=)": looped("add(a, b, out=c)", add=torch.add, **tensors),
        "torch.add": looped("add(a, b)", add=torch.add, **tensors),
    }


def measure(s: Any) -> dict[str, Any]:
    """Median, least and 80th percentile of each path in microseconds, and its ratio to the bare loop."""
    found = paths(s)
    times: dict[str, list[float]] = {name: [] for name in found}
    order = random.Random(0)
    for run in found.values():
        run(LAUNCHES)
    for _ in range(ROUNDS):
        for name in order.sample(list(found), len(found)):
            s.torch.cuda.synchronize()
            times[name].append(found[name](LAUNCHES) / LAUNCHES * 1e6)
    s.torch.cuda.synchronize()
    rows = {}
    for name, t in times.items():
        base = statistics.median(times["bare, maps" if name.endswith("maps") else "bare"])
        median = statistics.median(t)
        rows[name] = {
            "median_us": round(median, 3),
            "min_us": round(min(t), 3),
            "p80_us": round(sorted(t)[int(0.8 * len(t))], 3),
            "ratio": round(median / base, 3),
        }
    goal = rows["kernel"]["ratio"]
    return {
        "rounds": ROUNDS,
        "launches": LAUNCHES,
        "paths": rows,
        "goal": {"kernel_over_bare": goal, "at_most": 1.4, "met": goal <= 1.4},
    }
