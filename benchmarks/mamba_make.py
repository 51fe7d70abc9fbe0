"""Make the folder that benchmarks/mamba.py runs from on a machine with a GPU: wheels and one bundle for each row and variant.

    python benchmarks/mamba_make.py dumps/mamba

Needs NVRTC; no GPU.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from gemm_make import ROOT, wheels
from mamba_rows import VARIANTS, rows

sys.path.insert(0, str(ROOT / "examples"))

from mamba_chunk_scan import chunk_scan
from mamba_chunk_state import chunk_state

KERNELS = {"chunk_scan": chunk_scan, "chunk_state": chunk_state}


def bundles(folder: Path, only: str) -> None:
    for row in rows():
        for variant in VARIANTS[row.kernel]:
            if only in row.name:
                make = KERNELS[row.kernel]
                kernel = make.compile(*row.arguments(), target=row.target(variant), **row.keywords(variant))
                kernel.export(folder / "bundles" / f"{row.name}.{variant}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="rows whose name contains this")
    parser.add_argument("--no-wheels", action="store_true")
    given = parser.parse_args()
    bundles(given.folder, given.only)
    if not given.no_wheels:
        wheels(given.folder)


if __name__ == "__main__":
    main()
