"""The examples and the benchmarks' kernels on a GPU, compiled there, against the interpreter's results or numpy.

    python tests/device/examples.py dumps/examples

The folder is made by ``examples_make.py`` elsewhere. Needs torch for CUDA, NVRTC, numpy and ml_dtypes; neither TVM, z3 nor pip.
Prints a line of JSON for each case and one for all; ends with 1 if a case failed. ``--target cpu`` tries the cases without a GPU.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from example_cases import Example, cases, several_or_one, typed
from isolated import add_range, perform, summary, supervise
from packed import first_on_path, unpacked

SECONDS = 120  # of one case


def uploaded(array: np.ndarray) -> Any:
    """A tensor of the same type on the GPU: bytes travel, since torch does not take ml_dtypes."""
    import torch

    dtype = getattr(torch, array.dtype.name)
    if not array.size:  # no bytes can be seen as another type
        return torch.empty(array.shape, dtype=dtype, device="cuda")
    return (
        torch.from_numpy(np.frombuffer(array.tobytes(), np.uint8).copy())
        .cuda()
        .view(dtype)
        .reshape(array.shape)
    )


def downloaded(tensor: Any) -> np.ndarray:
    import torch

    dtype = typed(str(tensor.dtype).removeprefix("torch."))
    if not tensor.numel():
        return np.empty(tuple(tensor.shape), dtype)
    data = tensor.contiguous().reshape(-1).view(torch.uint8).cpu().numpy()
    return np.frombuffer(data.tobytes(), dtype).reshape(tuple(tensor.shape))


def check(example: Example, stored: Any, on_gpu: bool) -> str:
    """Cold and warm call of a kernel; what is wrong, or ""."""
    send, fetch = (uploaded, downloaded) if on_gpu else (np.copy, np.asarray)
    data = example.data()
    tensors = [send(a) for a in data]
    wanted = None if example.stored_as(0) in stored else example.reference(*data)
    for call in ("cold", "warm"):
        empty = example.result()
        begin = time.perf_counter()
        returned = example.run(tensors, None if empty is None else send(empty))
        got = [fetch(r) for r in several_or_one(returned)]
        spent = time.perf_counter() - begin
        if wanted is None:
            wanted = example.restored(stored, got)
        if problem := example.problem(got, wanted):
            return f"{call} call: {problem}"
        print(f"{example.name}: {call} call {spent * 1e3:.1f} ms", file=sys.stderr, flush=True)
    return ""


def child(folder: Path, target: str, only: str, numbers: range) -> int:
    os.environ.setdefault("TILE_CACHE_DIR", tempfile.mkdtemp(prefix="tile-cache-"))
    import tile_core as tile

    stored = dict(np.load(folder / "expected.npz"))
    on_gpu = target.startswith("cuda")
    rows = [(e.name, partial(check, e, stored, on_gpu)) for e in cases(only)]
    with tile.target(target):
        return perform(rows, numbers)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--target", default="cuda", help="default cuda: the GPU that is here")
    parser.add_argument("--installed", action="store_true", help="use the installed packages, not the wheels")
    add_range(parser)
    given = parser.parse_args()
    if given.range is not None:
        return child(given.folder, given.target, given.only, given.range)
    if not given.installed:
        first_on_path(unpacked(given.folder))
    count = range(len(cases(given.only)))
    again = [__file__, str(given.folder), "--only", given.only, "--target", given.target]
    return summary(supervise(again, count, SECONDS))


if __name__ == "__main__":
    raise SystemExit(main())
