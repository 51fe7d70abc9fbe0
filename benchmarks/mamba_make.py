"""Make the folder that benchmarks/mamba.py runs from on a machine with a GPU: wheels and one bundle for each row and variant.

    python benchmarks/mamba_make.py dumps/mamba

Needs NVRTC; no GPU.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from bundles import ROOT, Made, script
from mamba_rows import VARIANTS, rows

sys.path.insert(0, str(ROOT / "examples"))

from mamba_chunk_scan import chunk_scan
from mamba_chunk_state import chunk_state

KERNELS = {"chunk_scan": chunk_scan, "chunk_state": chunk_state}


def kernels() -> Iterator[Made]:
    for row in rows():
        for variant in VARIANTS[row.kernel]:
            make, given, more = KERNELS[row.kernel], row.arguments(), row.keywords(variant)
            target = row.target(variant)
            yield row.name, variant, lambda m=make, g=given, t=target, k=more: m.compile(*g, target=t, **k)


if __name__ == "__main__":
    script(__doc__, kernels())
