"""Make the folder that benchmarks/attention.py runs from on a machine with a GPU: wheels and one bundle for each row and variant.

    python benchmarks/attention_make.py dumps/attention

Needs NVRTC; no GPU.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from attention_rows import VARIANTS, rows
from gemm_make import ROOT, wheels

sys.path.insert(0, str(ROOT / "examples"))

from flash_attention import attention


def bundles(folder: Path, only: str) -> None:
    for row in rows():
        for variant in VARIANTS[row.dim, row.causal]:
            if only in row.name:
                kernel = attention.compile(*row.arguments(), target="cuda:sm_90a", **row.keywords(variant))
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
