"""Measure kernels and compare them."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..backend import HostTimer, Samples
from .bundle import Bundle
from .compiled import Kernel


def bench(run: Callable[..., Any], *arguments: Any, warmup_ms: float = 25, repeat_ms: float = 100) -> Samples:
    """Times of ``run(*arguments)`` in milliseconds; a ``Kernel`` or ``Bundle`` is timed by its backend's own clock.

    ``warmup_ms`` and ``repeat_ms`` are how long to warm up and to measure.
    """
    if isinstance(run, (Kernel, Bundle)):
        run(*arguments)
        device = run.backend.device(0)
        timer = run.backend.timer(device)
        return timer.time(lambda: run(*arguments), warmup_ms=warmup_ms, repeat_ms=repeat_ms)
    return HostTimer(lambda: None).time(lambda: run(*arguments), warmup_ms=warmup_ms, repeat_ms=repeat_ms)


@dataclass(frozen=True)
class Comparison:
    """Samples by name. The first is what the others are compared with."""

    samples: Mapping[str, Samples]

    def ratio(self, name: str) -> float:
        """How many times as fast as the first one ``name`` is (by medians)."""
        first = next(iter(self.samples.values()))
        return first.median / self.samples[name].median

    def __str__(self) -> str:
        rows = [f"{'':20} {'median ms':>10} {'p20':>10} {'p80':>10} {'n':>5} {'ratio':>6}"]
        for name, s in self.samples.items():
            spread = f"{s.median:10.4f} {s.quantile(0.2):10.4f} {s.quantile(0.8):10.4f}"
            rows.append(f"{name:20} {spread} {len(s.times):5} {self.ratio(name):6.2f}")
        return "\n".join(rows)


def compare(
    runs: Mapping[str, Callable[[], Any]], *, rounds: int = 20, inner: int = 1, seed: int = 0
) -> Comparison:
    """Time several callables interleaved in one process, in a random order each round.

    ``inner``: calls for one sample.
    """
    import time

    order = random.Random(seed)
    times: dict[str, list[float]] = {name: [] for name in runs}
    for run in runs.values():
        run()
    for _ in range(rounds):
        for name in order.sample(list(runs), len(runs)):
            begin = time.perf_counter()
            for _ in range(inner):
                runs[name]()
            times[name].append((time.perf_counter() - begin) / inner * 1e3)
    return Comparison(
        {n: Samples(tuple(sorted(t)), f"host clock, {inner} calls a sample") for n, t in times.items()}
    )
