"""All orderings that memory demands of a loop body, from what its ops read and write.

Ring: written before read, read before its slot is written again. Carried: each access after the conflicting one before it in
body order, which wraps round with distance 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise

from .model import Body, Dep, Storage


def dependences(body: Body) -> tuple[Dep, ...]:
    """What the reads, writes and updates of the ops demand."""
    found = (d for s in body.storage for d in (_carried(body, s) if s.carried else _ring(body, s)))
    kept = (d for d in found if d.u != d.v or d.ring or d.distance)
    return tuple(
        dict.fromkeys(replace(d, queued=d.kind != "RAW" and body.same_queue(d.u, d.v)) for d in kept)
    )


def _ring(body: Body, s: Storage) -> Iterator[Dep]:
    writers = [o.name for o in body.ops if s.name in o.writes]
    readers = [(o.name, r.back) for o in body.ops for r in o.reads if r.name == s.name]
    for w, x in pairwise(writers):
        if _near(body, w, x):
            yield Dep(w, x, 0, "WAW", s.name)
    for w in writers:
        for r, back in readers:
            yield Dep(w, r, back, "RAW", s.name)
            yield Dep(r, w, -back, "WAR", s.name, True)
        yield from (Dep(x, w, 0, "WAW", s.name, True) for x in writers if _near(body, x, w))


def _near(body: Body, u: str, v: str) -> bool:
    """Whether both are in one stream: other streams write other parts of the tile."""
    return body.op[u].stream == body.op[v].stream


def _carried(body: Body, s: Storage) -> Iterator[Dep]:
    used = [
        (o.name, s.name in o.updates)
        for o in body.ops
        if s.name in o.updates or any(r.name == s.name for r in o.reads)
    ]
    for i, (u, changes) in enumerate(used):
        for step in range(1, len(used) + 1):  # up to and with the next update
            v, next_changes = used[(i + step) % len(used)]
            if changes or next_changes:
                yield Dep(u, v, 1 if i + step >= len(used) else 0, "SEQ", s.name)
            if next_changes:
                break


def unique(deps: Iterable[Dep]) -> tuple[Dep, ...]:
    return tuple(dict.fromkeys(deps))
