"""Every case of the named device helpers on a GPU, against what numpy and the machine emulator give.

Here, where the packages and ml_dtypes are installed:  python tests/device/helpers.py --prepare helpers.npz [--emulate]
On the machine with the GPU (numpy and NVRTC are enough):  python tests/device/helpers.py helpers.npz
Prints one line of JSON for each case and a summary; ends with 1 if a case failed. A case that hangs or breaks the context is
reported, and the rest goes on in a fresh process.
"""

from __future__ import annotations

import argparse
import ctypes
import glob
import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from isolated import add_range, perform, summary, supervise

ROOT = Path(__file__).parents[2]
MODULES = ["scalar", "memory", "move", "warp", "matrix", "tensor", "warpgroup", "gemm"]
SECONDS = 60  # of one case


# ---- preparing


def prepare(file: Path, emulate: bool) -> None:
    for folder in ("tile-core/src", "tile-backend-cuda/src", "tile-backend-cuda/tests/prelude/kernels"):
        sys.path.insert(0, str(ROOT / folder))
    import importlib

    from tile_backend_cuda.prelude.table import complete
    from tile_backend_cuda.prelude.tensor_map import TensorMap

    stored: dict[str, np.ndarray] = {}
    rows: list[dict[str, Any]] = []

    def store(array: np.ndarray) -> dict[str, Any]:
        name = f"a{len(stored)}"
        stored[name] = np.frombuffer(array.tobytes(), np.uint8)
        return {"array": name, "dtype": array.dtype.name, "shape": list(array.shape)}

    for module in MODULES:
        for case in importlib.import_module(f"{module}_cases").cases():
            if emulate:
                report, results = case.emulated()
                if not report.clean or case.wrong(results):
                    raise SystemExit(f"{case.name} fails under the emulator: {report} {case.wrong(results)}")
            arguments: list[dict[str, Any]] = []
            for a in case.arguments:
                if isinstance(a, TensorMap):
                    more = {"box": a.box, "steps": a.steps, "swizzle": a.swizzle, "nan": a.nan}
                    arguments.append({"map": store(a.array), **more})
                else:
                    arguments.append(store(a) if isinstance(a, np.ndarray) else {"int": int(a)})
            rows.append(
                {
                    "name": case.name,
                    "source": complete(case.text),
                    "entry": case.entry,
                    "arch": case.arch,
                    "launch": [case.grid, case.threads, case.shared, case.cluster],
                    "arguments": arguments,
                    "expected": {at: store(wanted) for at, wanted in case.expected.items()},
                    "allowed": [case.relative, case.absolute],
                }
            )
    np.savez_compressed(file, cases=np.frombuffer(json.dumps(rows).encode(), np.uint8), **stored)
    print(f"{len(rows)} cases, {file.stat().st_size / 1e6:.2f} MB in {file}")


# ---- on the device


class Failure(Exception):
    """A call of the driver or of NVRTC that failed."""


def load(names: list[str]) -> ctypes.CDLL:
    for name in names:
        try:
            return ctypes.CDLL(name, ctypes.RTLD_GLOBAL)
        except OSError:
            continue
    raise Failure(f"none of {names} loads")


def nvrtc() -> ctypes.CDLL:
    """Of the wheels beside torch, else of the loader's path."""
    found = [f for p in sys.path for f in glob.glob(f"{p}/nvidia/*/lib/libnvrtc*.so*") if ".alt." not in f]
    builtins = [f for f in found if "builtins" in f]
    if builtins:
        load(builtins)
    return load(
        [*(f for f in found if "builtins" not in f), "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"]
    )


class Device:
    """Device 0 through the driver's interface."""

    def __init__(self) -> None:
        self.cuda, self.nvrtc = load(["libcuda.so.1"]), nvrtc()
        self("cuInit", 0)
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self("cuDeviceGet", ctypes.byref(device), 0)
        self("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self("cuCtxSetCurrent", context)
        major, minor = ctypes.c_int(), ctypes.c_int()
        self("cuDeviceGetAttribute", ctypes.byref(major), 75, device)
        self("cuDeviceGetAttribute", ctypes.byref(minor), 76, device)
        self.capability = major.value * 10 + minor.value

    def __call__(self, name: str, *arguments: Any) -> None:
        error = getattr(self.cuda, name)(*arguments)
        if error:
            text = ctypes.c_char_p()
            self.cuda.cuGetErrorString(error, ctypes.byref(text))
            raise Failure(f"{name}: {error} {(text.value or b'').decode()}")

    def compile(self, text: str) -> bytes:
        """For this device, whatever the case's first architecture."""
        # only the variant with a suffix has wgmma and setmaxnreg
        arch = f"sm_{self.capability}" + ("a" if self.capability >= 90 else "")
        program, size = ctypes.c_void_p(), ctypes.c_size_t()
        n = self.nvrtc
        n.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"case.cu", 0, None, None)
        options = [f"--gpu-architecture={arch}".encode(), b"-std=c++17"]
        error = n.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
        n.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        n.nvrtcGetProgramLog(program, log)
        if error:
            raise Failure(f"NVRTC: {log.value.decode()[:2000]}")
        n.nvrtcGetCUBINSize(program, ctypes.byref(size))
        cubin = ctypes.create_string_buffer(size.value)
        n.nvrtcGetCUBIN(program, cubin)
        return cubin.raw

    def upload(self, data: np.ndarray) -> int:
        address = ctypes.c_uint64()
        self("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(max(16, data.nbytes)))
        self("cuMemcpyHtoD_v2", address, data.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(data.nbytes))
        return address.value

    def download(self, address: int, size: int) -> np.ndarray:
        out = np.zeros(size, np.uint8)
        self(
            "cuMemcpyDtoH_v2",
            out.ctypes.data_as(ctypes.c_void_p),
            ctypes.c_uint64(address),
            ctypes.c_size_t(size),
        )
        return out

    def encode(self, address: int, row: dict[str, Any]) -> ctypes.Array:
        shape, item = row["map"]["shape"], size_of(row["map"]["dtype"])
        rank = len(shape)
        strides = [item * int(np.prod(shape[i + 1 :])) for i in range(rank)]
        raw = (ctypes.c_char * (128 + 64))()
        start = -ctypes.addressof(raw) % 64
        kept = (ctypes.c_char * 128).from_buffer(raw, start)
        self(
            "cuTensorMapEncodeTiled",
            ctypes.c_void_p(ctypes.addressof(kept)),
            TENSOR_TYPES.get(row["map"]["dtype"], {1: 0, 2: 1, 4: 2, 8: 4}[item]),
            rank,
            ctypes.c_void_p(address),
            (ctypes.c_uint64 * rank)(*shape[::-1]),
            (ctypes.c_uint64 * max(1, rank - 1))(*strides[:-1][::-1]),
            (ctypes.c_uint32 * rank)(*row["box"][::-1]),
            (ctypes.c_uint32 * rank)(*row["steps"][::-1]),
            0,
            {0: 0, 32: 1, 64: 2, 128: 3}[row["swizzle"]],
            0,
            int(row["nan"]),
        )
        return kept


TENSOR_TYPES = {"float16": 6, "float32": 7, "float64": 8, "bfloat16": 9}
SIZES = {"bfloat16": 2, "float8_e4m3fn": 1, "float8_e5m2": 1}


def size_of(dtype: str) -> int:
    return SIZES.get(dtype) or np.dtype(dtype).itemsize


class Attribute(ctypes.Structure):
    """CUlaunchAttribute."""

    _fields_ = (("id", ctypes.c_int), ("pad", ctypes.c_int), ("value", ctypes.c_uint32 * 16))


class Config(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = (
        *((f"{what}{axis}", ctypes.c_uint) for what in ("grid", "block") for axis in "xyz"),
        ("shared", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(Attribute)),
        ("count", ctypes.c_uint),
    )


def triple(size: Any) -> list[int]:
    return ([size] if isinstance(size, int) else list(size)) + [1, 1][
        : 2 if isinstance(size, int) else 3 - len(size)
    ]


def run_case(device: Device, row: dict[str, Any], stored: Any) -> str:
    """What is wrong; empty if nothing is."""
    if int("".join(filter(str.isdigit, row["arch"]))) > device.capability:
        return "skipped: newer architecture"
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    device("cuModuleLoadData", ctypes.byref(module), device.compile(row["source"]))
    device("cuModuleGetFunction", ctypes.byref(function), module, row["entry"].encode())
    grid, threads, shared, cluster = row["launch"]
    if shared > 48 << 10:
        device("cuFuncSetAttribute", function, 8, shared)
    addresses: dict[int, int] = {}
    values: list[Any] = []
    for i, a in enumerate(row["arguments"]):
        if "int" in a:
            values.append(ctypes.c_int64(a["int"]))
            continue
        # the same array given twice is one buffer
        addresses[i] = device.upload(stored[(a.get("map") or a)["array"]])
        values.append(device.encode(addresses[i], a) if "map" in a else ctypes.c_uint64(addresses[i]))
    pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(v) for v in values))
    attribute = Attribute(
        4, 0, (ctypes.c_uint32 * 16)(cluster, 1, 1)
    )  # CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
    config = Config(
        *triple(grid), *triple(threads), shared, None, ctypes.pointer(attribute), int(cluster > 1)
    )
    device("cuLaunchKernelEx", ctypes.byref(config), function, pointers, None)
    device("cuCtxSynchronize")
    for at, wanted in row["expected"].items():
        got = device.download(addresses[int(at)], stored[wanted["array"]].nbytes)
        if problem := difference(got, stored[wanted["array"]], wanted["dtype"], *row["allowed"]):
            return f"argument {at}: {problem}"
    return ""


def difference(got: np.ndarray, wanted: np.ndarray, dtype: str, relative: float, absolute: float) -> str:
    size = size_of(dtype)
    if not relative and not absolute:
        bad = np.unique(np.flatnonzero(got != wanted) // size)
        show = got.reshape(-1, size), wanted.reshape(-1, size)
    else:
        show = got.view(dtype), wanted.view(dtype)
        x, y = (v.astype(np.float64) for v in show)
        bad = np.flatnonzero(
            ~((np.abs(x - y) <= absolute + relative * np.abs(y)) | (np.isnan(x) & np.isnan(y)) | (x == y))
        )
    if not len(bad):
        return ""
    i = bad[0]
    return f"{len(bad)} of {len(show[0])} differ, the first at {i}: {show[0][i]} instead of {show[1][i]}"


def child(file: Path, numbers: range) -> int:
    stored = np.load(file)
    rows = json.loads(stored["cases"].tobytes())
    device = Device()
    return perform([(r["name"], partial(run_case, device, r, stored)) for r in rows], numbers)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path, nargs="?", default=Path("helpers.npz"))
    parser.add_argument("--prepare", action="store_true", help="write FILE instead of running it")
    parser.add_argument(
        "--emulate", action="store_true", help="with --prepare: run each case under the emulator first"
    )
    add_range(parser)
    given = parser.parse_args()
    if given.prepare:
        prepare(given.file, given.emulate)
        return 0
    if given.range is not None:
        return child(given.file, given.range)
    count = len(json.loads(np.load(given.file)["cases"].tobytes()))
    return summary(supervise([__file__, str(given.file)], range(count), SECONDS))


if __name__ == "__main__":
    sys.exit(main())
