"""Make the folder that benchmarks/mla.py runs from on a machine with a GPU: wheels and one bundle for each row and variant.

    python benchmarks/mla_make.py dumps/mla

Needs NVRTC; no GPU.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from bundles import ROOT, Made, script
from mla_rows import VARIANTS, rows

sys.path.insert(0, str(ROOT / "examples"))

from mla_decode import decode


def kernels() -> Iterator[Made]:
    for row in rows():
        for variant in VARIANTS[row.form]:
            given, more = row.arguments(), row.keywords(variant)
            yield row.name, variant, lambda g=given, k=more: decode.compile(*g, target="cuda:sm_90a", **k)


if __name__ == "__main__":
    script(__doc__, kernels())
