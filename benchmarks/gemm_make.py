"""Make the folder that benchmarks/gemm.py runs from on a machine with a GPU: wheels and one bundle for each row and variant.

    python benchmarks/gemm_make.py dumps/gemm

Needs NVRTC; no GPU.
"""

from __future__ import annotations

from collections.abc import Iterator

from bundles import Made, script
from gemm_rows import rows
from kernels.gemm import gemm
from kernels.gemm_forms import batched, grouped, stored
from kernels.small_m import small_m, spread_gemm

KERNELS = {
    "gemm": gemm,
    "stored": stored,
    "batched": batched,
    "grouped": grouped,
    "small_m": small_m,
    "spread_gemm": spread_gemm,
}


def kernels() -> Iterator[Made]:
    for row in rows():
        for variant in row.variants:
            make = KERNELS[row.made_by(variant)]
            given, more = row.arguments(), row.keywords(variant)
            yield (
                row.name,
                variant,
                lambda m=make, g=given, k=more: m.compile(*g, target="cuda:sm_90a", **k),
            )


if __name__ == "__main__":
    script(__doc__, kernels())
