"""Check the CUDA launcher on a machine with a GPU and measure a warm launch. Prints JSON; every check is tried, whatever fails.

    python tests/device/launch.py dumps/launch --json launch.json

The folder is made by ``launch_make.py`` elsewhere: wheels, bundles, the bare loop. Needs Python 3.10 or newer, the driver,
and torch for CUDA (whose NVRTC one check uses); no TVM, z3, pip or compiler.
``--installed`` uses the packages of this Python instead of the wheels.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from packed import unpacked

CHECKS: dict[str, Callable[[Any], Any]] = {}


def check(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    CHECKS[function.__name__] = function
    return function


class Setting:
    """What the checks share: torch, tile and the bundles."""

    def __init__(self, folder: Path) -> None:
        import torch

        import tile_core as tile

        self.folder = folder
        self.torch = torch
        self.tile = tile
        self.device = torch.device("cuda", 0)
        torch.cuda.set_device(0)
        torch.cuda.init()

    def load(self, name: str) -> Any:
        return self.tile.load(self.folder / "bundles" / name)

    def vectors(self, n: int = 1000, device: Any = None) -> tuple[Any, Any, Any]:
        where = device or self.device
        a, b = (self.torch.randn(n, device=where) for _ in range(2))
        return a, b, self.torch.zeros(n, device=where)

    def error(self, run: Callable[[], Any]) -> tuple[str, str]:
        """(type, message) of what a call raises."""
        try:
            run()
        except Exception as error:
            return type(error).__name__, str(error)
        raise AssertionError("nothing was raised")


@check
def native(s: Setting) -> Any:
    """The extension is there; no compiler and no TVM came with the bundle."""
    from tile_backend_cuda.launcher import native

    assert native.module() is not None, "the native launcher is not in the wheel"
    kernel = s.load("add")
    kernel(*s.vectors())
    assert kernel._direct, "the loaded kernel has no direct call"
    there = [m for m in ("tvm", "tvm_ffi", "z3", "llvmlite") if m in sys.modules]
    assert not there, there
    return {"torch_exchange": "__dlpack_c_exchange_api__" in vars(s.torch.Tensor)}


@check
def values(s: Setting) -> None:
    kernel = s.load("add")
    for n in (1000, 1, 255, 256, 257, 1 << 20, 0):
        for _ in range(2):
            a, b, c = s.vectors(n)
            kernel(a, b, c)
            assert s.torch.equal(c, a + b), n
    a, b, c = s.vectors()
    kernel(s.torch.nn.Parameter(a), b.requires_grad_(), c)
    assert s.torch.equal(c, a + b)


@check
def streams(s: Setting) -> None:
    """On the caller's current stream: behind a sleep, ordered before and after torch's own work on it."""
    kernel, torch = s.load("add"), s.torch
    a, b, c = s.vectors(1 << 16)
    kernel(a, b, c)
    for _ in range(5):
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            torch.cuda._sleep(20_000_000)
            a.fill_(3)
            b.fill_(4)
            kernel(a, b, c)
            after = c * 2
            c.zero_()
        stream.synchronize()
        assert (after == 14).all()


@check
def stream_argument(s: Setting) -> None:
    kernel, torch = s.load("add"), s.torch
    a, b, c = s.vectors(1 << 16)
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    for _ in range(2):
        with torch.cuda.stream(stream):
            torch.cuda._sleep(20_000_000)
            a.fill_(1)
            b.fill_(1)
        kernel(a, b, c, stream=stream.cuda_stream)
        stream.synchronize()
        assert (c == 2).all()


@check
def graphs(s: Setting) -> Any:
    """Captured with other torch work, with tensor maps and with workspaces; replays see new data."""
    torch = s.torch
    add, tma, work = s.load("add"), s.load("add_tma"), s.load("workspace")
    a, b, c = (torch.randn(64, 64, device=s.device) for _ in range(3))
    out = [torch.zeros(64, 64, device=s.device) for _ in range(3)]
    runs = {
        "pointers": lambda: add(a.view(-1), b.view(-1), out[0].view(-1)),
        "maps": lambda: tma(a, b, out[1]),
        "workspaces": lambda: work(a.view(-1), out[2].view(-1)),
    }
    for run in runs.values():
        run()
    found = {}
    for name, run in runs.items():
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            run()
            doubled = [o * 2 for o in out]
        for _ in range(3):
            a.normal_()
            b.normal_()
            graph.replay()
            torch.cuda.synchronize()
            want = {"pointers": a + b, "maps": a + b, "workspaces": a * a / 2}[name]
            n = list(runs).index(name)
            assert torch.equal(out[n], want), name
            assert torch.equal(doubled[n], want * 2), name
        found[name] = "ok"
    del c
    return found


@check
def threads(s: Setting) -> None:
    """Eight threads share a kernel, each with its own stream and tensors, 200 dependent launches."""
    torch, kernel = s.torch, s.load("add")
    one = torch.ones(4096, device=s.device)
    torch.cuda.synchronize()
    wrong: list[Any] = []

    def work(n: int) -> None:
        try:
            with torch.cuda.stream(torch.cuda.Stream()):
                x = torch.zeros(4096, device=s.device)
                for _ in range(200):
                    kernel(x, one, x)
                if not (x == 200).all().item():
                    wrong.append((n, x[:4].tolist()))
        except Exception as error:
            wrong.append((n, repr(error)))

    for _ in range(5):
        _all([threading.Thread(target=work, args=(n,)) for n in range(8)])
    assert not wrong, wrong


def _all(threads: list[threading.Thread]) -> None:
    for t in threads:
        t.start()
    for t in threads:
        t.join()


@check
def thread_without_a_context(s: Setting) -> None:
    kernel = s.load("add")
    a, b, c = s.vectors()
    kernel(a, b, c)
    s.torch.cuda.synchronize()
    want, errors = a + b, []

    def work() -> None:
        try:
            kernel(a, b, c, stream=0)
        except Exception as error:
            errors.append(repr(error))

    for _ in range(3):
        c.zero_()
        s.torch.cuda.synchronize()
        _all([threading.Thread(target=work)])
        s.torch.cuda.synchronize()
        assert not errors, errors
        assert s.torch.equal(c, want)


@check
def full_queue(s: Setting) -> Any:
    """The driver waits when its queue is full; other Python threads go on."""
    torch, kernel = s.torch, s.load("add")
    a, b, c = s.vectors(16)
    kernel(a, b, c)
    torch.cuda.synchronize()
    done, ticks = threading.Event(), 0

    def work() -> None:
        torch.cuda.set_device(0)
        torch.cuda._sleep(400_000_000)
        for _ in range(3000):
            kernel(a, b, c)
        done.set()

    thread = threading.Thread(target=work)
    begin = time.perf_counter()
    thread.start()
    while not done.is_set():
        time.sleep(0.0005)
        ticks += 1
    spent = (time.perf_counter() - begin) * 1e3
    thread.join()
    torch.cuda.synchronize()
    assert ticks > 20, (ticks, spent)
    return {"ticks": ticks, "milliseconds": spent}


@check
def errors(s: Setting) -> Any:
    """A warm call raises what a cold one does."""
    torch = s.torch
    a, b, c = s.vectors()
    odd = torch.zeros(4001 + 3, dtype=torch.uint8, device=s.device)
    mistakes = {
        "type": (a, b.half(), c),
        "rank": (a, b, c[None]),
        "extent": (a, b[:100], c),
        "stride": (a, b, torch.zeros(2000, device=s.device)[::2]),
        "count": (a, b),
        "not a tensor": (a, b, 3),
        "host": (a.cpu(), b.cpu(), c.cpu()),
        "mixed": (a, b.cpu(), c),
        "bytes": (a, b, odd[1:1001]),
    }
    found = {}
    for name, arguments in mistakes.items():
        kernel = s.load("add")
        cold = s.error(lambda k=kernel, x=arguments: k(*x))
        kernel(a, b, c)
        warm = s.error(lambda k=kernel, x=arguments: k(*x))
        assert cold == warm, (cold, warm)
        assert cold[0] == "ArgumentError", cold
        found[name] = cold[1].splitlines()[0]
    return found


@check
def tensor_maps(s: Setting) -> Any:
    """Tiles by the copy engine, ragged too; what it cannot address is refused."""
    torch, kernel = s.torch, s.load("add_tma")
    for m, n in ((64, 64), (32, 64), (1, 4), (33, 68), (1000, 1004), (0, 64)):
        for _ in range(2):
            a, b = (torch.randn(m, n, device=s.device) for _ in range(2))
            c = torch.zeros(m, n, device=s.device)
            kernel(a, b, c)
            assert torch.equal(c, a + b), (m, n)
    sets = [[torch.randn(64, 64, device=s.device) for _ in range(3)] for _ in range(6)]
    for _ in range(3):  # more sets than are remembered
        for a, b, c in sets:
            kernel(a, b, c)
            assert torch.equal(c, a + b)
    bad = [torch.zeros(64, 33, device=s.device) for _ in range(3)]
    shifted = [torch.zeros(64 * 64 + 1, device=s.device)[1:].view(64, 64) for _ in range(3)]
    return {
        "stride": s.error(lambda: kernel(*bad)),
        "alignment": s.error(lambda: kernel(*shifted)),
    }


@check
def attributes(s: Setting) -> None:
    """Clusters, programmatic launch, much shared memory, workspaces, scalars of all types."""
    torch = s.torch
    ranks = torch.zeros(8, dtype=torch.int32, device=s.device)
    s.load("cluster")(ranks)
    assert ranks.tolist() == [400, 401, 402, 403] * 2
    kernel = s.load("add_pdl")
    a, b, c = s.vectors()
    for _ in range(10):
        kernel(a, b, c)
    assert torch.equal(c, a + b)
    x = torch.randn(40_000, device=s.device)
    want = x.flip(0)
    s.load("reverse")(x)
    assert torch.equal(x, want)
    a, c = torch.randn(5000, device=s.device), torch.zeros(5000, device=s.device)
    kernel = s.load("workspace")
    for _ in range(3):
        kernel(a, c.zero_())
        assert torch.equal(c, a * a / 2)
    c = torch.zeros(7, device=s.device)
    kernel = s.load("scalars")
    half = 0x2E66  # 0.1
    for _ in range(2):
        kernel(c.zero_(), 1.5, 2.25, -3, 0.1, -(2**20), True)
        assert c.tolist() == [1.5, 2.25, -3.0, float(half), -float(2**20), 1.0, 7.0]


@check
def portable(s: Setting) -> None:
    """The ctypes launcher gives the same."""
    from tile_backend_cuda.launcher import CudaLauncher
    from tile_core.registry import registry

    launcher = CudaLauncher(registry().get("cuda").device(0), portable=True)
    for name in ("add", "add_tma", "workspace"):
        bundle = s.load(name)
        bundle._kernel._loaded[0] = launcher.load(bundle.artifact, bundle.launch)
        shape = (64, 64) if name == "add_tma" else (4096,)
        a, b = (s.torch.randn(shape, device=s.device) for _ in range(2))
        c = s.torch.zeros(shape, device=s.device)
        for _ in range(2):
            bundle(*((a, c) if name == "workspace" else (a, b, c)))
            assert s.torch.equal(c, a * a / 2 if name == "workspace" else a + b), name
        assert not bundle._direct


@check
def generated(s: Setting) -> Any:
    """Kernels of the compiler's own code, against torch."""
    torch, found = s.torch, {}
    references = {
        "gemm_relu": lambda a, b: torch.relu(a.float() @ b.float()),
        "softmax": lambda a: torch.softmax(a.float(), -1),
    }
    for name, reference in references.items():
        kernel = s.load(name)
        launch = kernel.launch
        inputs = [
            torch.randn(p.shape, device=s.device).to(getattr(torch, p.dtype))
            for n, p in enumerate(launch.params)
            if n not in launch.outputs
        ]
        for _ in range(2):
            out = kernel(*inputs)
        want = reference(*inputs)
        error = ((out.float() - want).abs().max() / want.abs().max()).item()
        assert error < 2e-2, (name, error)
        found[name] = error
    return found


@check
def refusals(s: Setting) -> Any:
    """Code for another architecture, more shared memory than there is, and a kernel that goes wrong."""
    from dataclasses import replace

    a, b, c = s.vectors()
    other = s.error(lambda: s.load("add_sm80")(a, b, c))
    assert "is compiled for" in other[1], other
    bundle = s.load("reverse")
    launch = replace(bundle.launch, extra={"shared": {"reverse": 300_000}})
    launcher = bundle.backend.launcher(bundle.backend.device(0))
    large = s.error(lambda: launcher.load(bundle.artifact, launch))
    assert large[0] == "Unsupported", large
    code = f"""
import sys; sys.path[:0] = {sys.path!r}
import torch, tile_core as tile
kernel = tile.load({str(s.folder / "bundles" / "wild")!r})
x = torch.zeros(8, device="cuda")
try:
    for _ in range(100): kernel(x)
    from tile_core.registry import registry
    b = registry().get("cuda"); b.launcher(b.device(0)).synchronize()
except tile.TileError as error:
    print(type(error).__name__, str(error))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "accessed memory it may not" in done.stdout, done.stdout + done.stderr[-2000:]
    return {"other": other, "shared": large, "wild": done.stdout.strip()}


@check
def other_device(s: Setting) -> Any:
    """The null stream of the second device, while the first is current."""
    if s.torch.cuda.device_count() < 2:
        return "one device"
    kernel = s.load("add")
    for n in (0, 1, 0, 1, 1):
        a, b, c = s.vectors(device=f"cuda:{n}")
        kernel(a, b, c)
        assert s.torch.equal(c, a + b), n
    assert len(kernel._direct) == 2
    a, b, _ = s.vectors()
    return s.error(lambda: kernel(a, b, s.vectors(device="cuda:1")[2]))


@check
def compiler(s: Setting) -> Any:
    """The NVRTC that torch brought is found, and what it makes runs."""
    from tile_core.backend import LaunchSpec, Source
    from tile_core.registry import registry

    backend = registry().get("cuda")
    info = backend.info(backend.device(0).target)
    role = backend.compiler(info)
    bundle = s.load("add")
    launch = LaunchSpec(bundle.launch.params, bundle.launch.entries)
    begin = time.perf_counter()
    artifact = role.compile(Source(bundle.source, "cuda", ".cu", launch), {"strict": True})
    first = (time.perf_counter() - begin) * 1e3
    text = bundle.source.replace("A[i] + B[i]", "A[i] - B[i]")
    begin = time.perf_counter()
    artifact = role.compile(Source(text, "cuda", ".cu", launch), {"strict": True})
    again = (time.perf_counter() - begin) * 1e3
    kernel = backend.launcher(backend.device(0)).load(artifact, launch)
    a, b, c = s.vectors()
    assert kernel.call((a, b, c), None)
    assert s.torch.equal(c, a - b)
    return {
        "fingerprint": role.fingerprint(),
        "first_ms": first,
        "again_ms": again,
        "resources": dict(artifact.resources),
    }


@check
def timer(s: Setting) -> Any:
    """The event timer against the memory's rate: 3 x 64 MiB."""
    kernel = s.load("add")
    a, b, c = s.vectors(1 << 24)
    samples = s.tile.bench(kernel, a, b, c)
    rate = 3 * 4 * (1 << 24) / (samples.median * 1e-3) / 1e12
    assert 0.5 < rate < 20, rate
    return {
        "median_ms": samples.median,
        "p20": samples.quantile(0.2),
        "p80": samples.quantile(0.8),
        "n": len(samples.times),
        "method": samples.method,
        "terabytes_per_second": rate,
    }


@check
def doctor(s: Setting) -> Any:
    from tile_core.registry import registry

    backend = registry().get("cuda")
    rows = {c.name: [(f := c.run()).level, f.message] for c in backend.checks()}
    assert not [name for name, row in rows.items() if row[0] == "error"], rows
    return {"devices": [str(d) for d in backend.devices()], **rows}


@check
def warm_launch(s: Setting) -> Any:
    """Microseconds of a warm launch by path, interleaved in one process. The device is idle when a round starts."""
    from launch_cost import measure

    return measure(s)


def facts() -> dict[str, Any]:
    import torch

    smi = ["nvidia-smi", "--query-gpu=name,driver_version,clocks.sm,power.limit", "--format=csv,noheader"]
    try:
        card = subprocess.run(smi, capture_output=True, text=True, check=False).stdout.strip()
    except OSError as error:
        card = str(error)
    return {
        "python": sys.version,
        "torch": torch.__version__,
        "machine": platform.processor(),
        "cores": os.cpu_count(),
        "card": card,
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="made by launch_make.py")
    parser.add_argument(
        "--json", type=Path, help="also write the result here; default $OUT/launch.json if OUT is set"
    )
    parser.add_argument("--only", nargs="*", default=list(CHECKS), choices=list(CHECKS), metavar="CHECK")
    parser.add_argument("--installed", action="store_true", help="use the installed packages, not the wheels")
    options = parser.parse_args()
    if not options.installed:
        sys.path.insert(0, str(unpacked(options.folder)))
    setting = Setting(options.folder.resolve())
    results: dict[str, Any] = {}
    for name in options.only:
        begin = time.perf_counter()
        try:
            results[name] = {"ok": True, "found": CHECKS[name](setting)}
        except Exception as error:
            import traceback

            results[name] = {
                "ok": False,
                "error": f"{type(error).__name__}: {error}",
                "trace": traceback.format_exc()[-1500:],
            }
        results[name]["seconds"] = round(time.perf_counter() - begin, 2)
        print(name, "ok" if results[name]["ok"] else results[name]["error"], file=sys.stderr, flush=True)
    text = json.dumps({"facts": facts(), "results": results}, indent=1, default=str)
    print(text)
    file = options.json or (Path(os.environ["OUT"]) / "launch.json" if os.environ.get("OUT") else None)
    if file:
        file.write_text(text, encoding="utf8")
    return int(any(not r["ok"] for r in results.values()))


if __name__ == "__main__":
    raise SystemExit(main())
