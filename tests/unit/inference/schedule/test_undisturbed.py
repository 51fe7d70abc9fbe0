"""Between two products that run together nobody writes the registers of the second."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

import bodies as b
import pytest
from making import schedule

from tile_core.inference.schedule.dependences import dependences
from tile_core.inference.schedule.model import GROUP, REGISTER, Body
from tile_core.inference.schedule.modulo import timing
from tile_core.inference.schedule.program import Schedule, Step
from tile_core.inference.schedule.relays import relayed
from tile_core.inference.schedule.undisturbed import moved

BODIES = (b.attention_hopper, b.attention_together, b.chunk_scan_hopper, b.dequant_hopper, b.gemm_hopper)


def between(s: Schedule) -> Iterator[tuple[str, str]]:
    """(op, product) where the op writes registers of the product after an older one was begun that still runs."""
    for steps in s.streams.values():
        queue = [x for x in steps if s.ops[x.op].asynchronous and s.body.observed(x.op) == GROUP]
        for first, second in pairwise(queue):
            run = steps[s.places.at[first.op][1] + 1 : s.places.at[second.op][1]]
            if any(is_over(s, first.op, x) for x in (*run, second)):
                continue
            o = s.ops[second.op]
            own = {n for n in (*o.writes, *o.updates) if s.body.tile[n].space == REGISTER}
            yield from ((x.op, second.op) for x in run if own & {*s.ops[x.op].writes, *s.ops[x.op].updates})


def is_over(s: Schedule, product: str, step: Step) -> bool:
    """Whether the step waits until the newest instance of the product is complete."""
    queue = s.body.queue(product)
    return any(
        s.places.group_gap(queue, product, step.op, w.distance) <= s.gap(product, step.op)
        for w in step.waits
        if s.tokens[w.token].kind == GROUP and s.tokens[w.token].producers[0] in queue
    )


@pytest.mark.parametrize("make", BODIES, ids=lambda f: f.__name__)
def test_nothing_stands_between(make: Callable[[], Body]) -> None:
    s = schedule(make())
    assert s is not None
    assert list(between(s)) == []


def test_a_settled_order_is_left_alone() -> None:
    body = b.gemm_hopper()
    deps = dependences(body)
    full, every = relayed(body, deps)
    times = timing(full, every)
    assert times is not None
    assert moved(full, tuple(every), times) is None
