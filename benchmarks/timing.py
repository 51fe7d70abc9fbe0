"""Times of contestants on a GPU whose clock depends on what ran before: short bursts from idle, in random order, medians.

Each contestant is captured in a CUDA graph of some milliseconds over several sets of data, so that neither launches nor a warm
cache count. A measurement: idle, the graph once (so that the power state is the contestant's own), the graph again between events.
"""

from __future__ import annotations

import math
import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Run = Callable[[Any], None]


@dataclass(frozen=True)
class Protocol:
    """``rounds`` of every contestant; ``idle`` seconds before each; ``work`` seconds timed."""

    rounds: int = 6
    idle: float = 0.05
    work: float = 0.004
    seed: int = 0


def burst(
    contestants: Mapping[str, Run], data: Sequence[Any], seconds: float, protocol: Protocol = Protocol()
) -> dict[str, list[float]]:
    """Microseconds of one call of each contestant, one figure per round.

    ``data``: sets of arguments that are used in turn. ``seconds``: a guess of one call, for how many make up a burst.
    """
    import torch

    stream = torch.cuda.Stream()
    count = max(len(data), min(400, math.ceil(protocol.work / seconds)))
    graphs: dict[str, Any] = {}
    with torch.cuda.stream(stream):
        for name, run in contestants.items():
            for one in data:
                run(one)
            stream.synchronize()
            graphs[name] = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graphs[name], stream=stream):
                for n in range(count):
                    run(data[n % len(data)])
        order = random.Random(protocol.seed)
        times: dict[str, list[float]] = {name: [] for name in contestants}
        for _ in range(protocol.rounds):
            names = list(contestants)
            order.shuffle(names)
            for name in names:
                times[name].append(_once(torch, graphs[name], stream, protocol.idle) / count)
    return times


def _once(torch: Any, graph: Any, stream: Any, idle: float) -> float:
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    stream.synchronize()
    time.sleep(idle)
    graph.replay()
    begin.record(stream)
    graph.replay()
    end.record(stream)
    end.synchronize()
    return begin.elapsed_time(end) * 1e3


def medians(times: Mapping[str, Sequence[float]]) -> dict[str, float]:
    return {name: statistics.median(t) for name, t in times.items()}


def geometric_mean(values: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))
