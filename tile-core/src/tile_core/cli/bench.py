"""``tile bench``: median time of a kernel on random tensors."""

from __future__ import annotations

import argparse

from .options import dim_values, dims, kernel
from .tables import show


def arguments(parser: argparse.ArgumentParser) -> None:
    kernel(parser)
    dims(parser)
    parser.add_argument("--repeat-ms", type=float, default=200, help="how long to measure")


def run(options: argparse.Namespace) -> int:
    from ..runtime import bench
    from .loading import load
    from .samples import tensors

    found = load(options)
    samples = bench(found, *tensors(found.launch, dim_values(options)), repeat_ms=options.repeat_ms)
    row = {
        "kernel": found.name,
        "target": str(found.target),
        "median_ms": round(samples.median, 5),
        "p20_ms": round(samples.quantile(0.2), 5),
        "p80_ms": round(samples.quantile(0.8), 5),
        "samples": len(samples.times),
        "method": samples.method,
    }
    show([row], as_json=options.json)
    return 0
