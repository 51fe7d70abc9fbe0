"""Random loop bodies."""

from __future__ import annotations

import random
from dataclasses import replace

from bodies import BLACKWELL, HOPPER, ROOM, kept, ring

from tile_core.inference.schedule.model import Body, Op, Read, Storage, Stream


def body(seed: int) -> Body:
    """Four to nine ops in two or three streams; some streams are of several warps."""
    r = random.Random(seed)
    units = r.choice((HOPPER, BLACKWELL))
    streams = [
        Stream("P", 32),
        *(Stream(n, 128, cooperative=r.random() < 0.4) for n in ("C0", "C1")[: r.randint(1, 2)]),
    ]
    ops: list[Op] = []
    tiles: list[Storage] = []
    for i in range(r.randint(4, 9)):
        op, tile = _op(r, i, r.choice(streams), tiles)
        ops.append(op)
        tiles.append(tile)
    last = streams[-1].name
    mine = [k for k, o in enumerate(ops) if o.stream == last]
    for k in r.sample(mine, min(len(mine), 2)):
        ops[k] = replace(ops[k], updates=("acc",))
    tiles.append(kept("acc", "register", 1024, last))
    return Body(f"random {seed}", units, tuple(streams), tuple(tiles), tuple(ops), ROOM, 40)


def _op(r: random.Random, i: int, stream: Stream, tiles: list[Storage]) -> tuple[Op, Storage]:
    kind = r.choice(("copy", "tensor", "sync", "sync"))
    usable = [t for t in tiles if t.space == "shared" or t.stream == stream.name]
    back = [Read(t.name, int(r.random() < 0.15)) for t in r.sample(usable, min(len(usable), r.randint(0, 2)))]
    space = "shared" if kind == "copy" or r.random() < 0.5 else "register"
    tile = ring(f"b{i}", space, 1024, r.randint(1, 4), stream.name, kind == "copy")
    cost = r.randint(20, 600)
    if kind == "sync":
        return Op(f"o{i}", stream.name, latency=cost, reads=tuple(back), writes=(tile.name,)), tile
    late = cost + r.choice((0, 30, 700))
    return Op(f"o{i}", stream.name, kind, cost, late, 20, tuple(back), (tile.name,)), tile
