"""Make the folder that benchmarks/backward.py runs from on a machine with a GPU: wheels and one bundle for each row and variant.

    python benchmarks/backward_make.py dumps/backward

Needs NVRTC; no GPU.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from backward_rows import VARIANTS, rows
from bundles import ROOT, Made, script

sys.path.insert(0, str(ROOT / "examples"))

from attention_backward import backward


def kernels() -> Iterator[Made]:
    for row in rows():
        for variant in VARIANTS:
            given, more = row.arguments(), row.keywords(variant)
            yield row.name, variant, lambda g=given, k=more: backward.compile(*g, target="cuda:sm_90a", **k)


if __name__ == "__main__":
    script(__doc__, kernels())
