"""Make the folder that ``examples.py`` and ``sanitizer.py`` run from with a GPU: wheels, and the interpreter's results.

    python tests/device/examples_make.py dumps/examples

Needs pip; no GPU. What is too large for the interpreter is compared with numpy there.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np
from example_cases import cases, several_or_one
from packed import wheels

import tile_core as tile


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--no-wheels", action="store_true", help="only the results")
    given = parser.parse_args()
    os.makedirs(given.folder, exist_ok=True)
    stored: dict[str, np.ndarray] = {}
    wrong = 0
    for example in cases(given.only):
        if example.large:
            continue
        data, out = example.data(), example.result()
        with tile.target("interpreter"):
            got = example.run(data, out)
        for n, result in enumerate(several_or_one(got)):
            # bytes: the file's reader does not know ml_dtypes
            stored[example.stored_as(n)] = np.frombuffer(np.ascontiguousarray(result).tobytes(), np.uint8)
        if problem := example.problem(got, example.reference(*data)):
            wrong += 1
            print(f"{example.name}: the interpreter and numpy disagree: {problem}", flush=True)
    np.savez_compressed(given.folder / "expected.npz", **stored)
    print(f"{len(stored)} results in {given.folder / 'expected.npz'}")
    if not given.no_wheels:
        wheels(given.folder)
    return int(bool(wrong))


if __name__ == "__main__":
    raise SystemExit(main())
