"""Runs all launches of a generated source under the emulator, in order, as a launcher would."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...backend import Source
from ...runtime.binding import evaluate
from .report import Report


def run_source(
    source: Source,
    run: Callable[..., Report],
    arguments: Sequence[Any],
    dims: Mapping[str, int],
    more: Callable[[Mapping[str, Any]], Mapping[str, Any]] = lambda values: {},
    **how: Any,
) -> list[Report]:
    """Every launch of generated code. Arrays change in place; ``dims``: values of symbolic dimensions.

    ``run`` is a vendor's ``machine.run``, called with text, entry, arguments and the launch. ``more`` makes the parameters
    that only this vendor has from the others. ``how``: mode, seed and timeout.
    """
    spec = source.launch
    values: dict[str, Any] = dict(zip((p.name for p in spec.params), arguments))
    values |= {p.name: dims[p.name] for p in spec.params[len(arguments) :]}
    values |= {
        f"workspace{n}": np.zeros(int(np.prod([evaluate(d, dims) for d in shape])) * size, np.uint8)
        for n, (shape, size) in enumerate(spec.extra.get("workspaces", ()))
    }
    values |= more(values)
    reports: list[Report] = []
    for entry, grid, threads in spec.entries:
        extents = [evaluate(e, dims) for e in grid]
        if 0 in extents or not evaluate(spec.extra.get("when", {}).get(entry, 1), dims):
            continue
        names = spec.extra.get("parameters", {}).get(entry, tuple(values))
        reports.append(
            run(
                source.text,
                entry,
                [values[n] for n in names],
                grid=extents,
                threads=threads,
                shared_bytes=spec.extra.get("shared", {}).get(entry, 0),
                cluster=spec.extra.get("cluster", {}).get(entry, (1, 1, 1)),
                **how,
            )
        )
    return reports
