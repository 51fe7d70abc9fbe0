"""Make the folder that benchmarks/gemm.py runs from on a machine with a GPU: wheels and one bundle for each row and variant.

    python benchmarks/gemm_make.py dumps/gemm

Needs NVRTC; no GPU.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from gemm_rows import rows
from kernels.gemm import gemm
from kernels.gemm_forms import batched, grouped, stored
from kernels.small_m import small_m, spread_gemm

ROOT = Path(__file__).parents[1]
KERNELS = {
    "gemm": gemm,
    "stored": stored,
    "batched": batched,
    "grouped": grouped,
    "small_m": small_m,
    "spread_gemm": spread_gemm,
}
WHEELS = ("./tile-core", "./tile-backend-cuda", "pluggy")


def wheels(folder: Path) -> None:
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(folder / "wheels"), *WHEELS]
    subprocess.run(command, cwd=ROOT, check=True)


def bundles(folder: Path, only: str) -> None:
    for row in rows():
        for variant in row.variants:
            if only in row.name:
                make = KERNELS[row.made_by(variant)]
                kernel = make.compile(*row.arguments(), target="cuda:sm_90a", **row.keywords(variant))
                kernel.export(folder / "bundles" / f"{row.name}.{variant}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="rows whose name contains this")
    parser.add_argument("--no-wheels", action="store_true")
    given = parser.parse_args()
    if not given.no_wheels:
        wheels(given.folder)
    bundles(given.folder, given.only)


if __name__ == "__main__":
    main()
