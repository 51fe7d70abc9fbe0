"""The schedules of a program's loops: from its graph and what inference has decided, by name of the loop region."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...errors import InternalError, KernelError, TileError
from ...expr import Buffer, Space
from ...graph import Graph, Loop
from ...hardware import TargetInfo
from ...layout.layout import Layout
from ...program import For, Launch
from ..adding import BoxAdd, staging
from ..bulk import BoxCopy
from ..model import GemmChoice
from ..teams import Teams
from .body import Facts, Reader
from .check import checked
from .crowds import told
from .model import Storage
from .modulo import timing
from .pins import Pins, anchored, freed
from .program import Schedule
from .program_order import in_program_order
from .region import LoopRegion
from .relays import relayed
from .rings import deepened
from .timing import Timing
from .together import together
from .tokens import synthesised

# bytes of shared memory that are left for barriers and alignment, where barriers are objects in it
BARRIERS = 1024


def schedules(
    graph: Graph,
    info: TargetInfo,
    atoms: Mapping[str, GemmChoice],
    layouts: Mapping[Buffer, Layout],
    engine_of: Mapping[str, str],
    num_stages: Mapping[str, int | None] | None = None,
    bulk: Mapping[str, BoxCopy] | None = None,
    optimal: bool = False,
    adds: Mapping[str, BoxAdd] | None = None,
) -> dict[str, Schedule]:
    """The schedule of each innermost loop with an op on an asynchronous engine. ``engine_of`` names that of each node.

    ``num_stages``: slots of rings that copies fill, by name of the loop (None: as many as needed and a few more); by default
    what the loop says. ``bulk``: boxes of the copies that an engine does; ``adds``: the sums that it does. ``optimal``: a solver
    looks for better schedules. A loop that tells its iterations more than tiles, or may end early, has no schedule.

    Raises:
        KernelError: the slots that the user pinned do not fit into shared memory.
        InternalError: a schedule does not pass its own check.
    """
    out: dict[str, Schedule] = {}
    for launch in (r for r in graph.loops if isinstance(r.stmt, Launch)):
        assert isinstance(launch.stmt, Launch)
        facts = Facts(
            info,
            atoms,
            layouts,
            engine_of,
            launch.stmt.thread_count,
            bulk or {},
            Teams.of(launch.stmt),
            adds or {},
        )
        readers = [
            Reader(region, facts, pinned(r.stmt, num_stages, r.name), Pins.of(region))
            for r in graph.loops
            for region in (LoopRegion(graph, r),)
            if isinstance(r.stmt, For)
            and _root(graph, r) == launch.name
            and _is_innermost(graph, r, engine_of)
        ]
        out |= _launch(graph, launch, facts, [r for r in readers if r.region.closed], optimal)
    return out


def pinned(stmt: For, num_stages: Mapping[str, int | None] | None, name: str) -> int | None:
    """Slots that the user wants: 0 and 1 both mean no overlap. None: the loop is not pipelined, or has stages alone."""
    if num_stages is not None and name in num_stages:
        wanted = num_stages[name]
        return None if wanted is None else max(1, wanted)
    if stmt.kind != "pipelined" or (stmt.stage and not stmt.num_stages):
        return None
    return max(1, stmt.num_stages)


def _launch(
    graph: Graph, launch: Loop, facts: Facts, readers: list[Reader], optimal: bool
) -> dict[str, Schedule]:
    """Schedules of the loops of one launch, which share its memory: all rings exist at once."""
    shared = facts.info.space(str(Space.SHARED))
    assert isinstance(launch.stmt, Launch)
    room = (shared.capacity if shared else 0) - _kept(facts.info) - staging(graph, facts.adds, launch.stmt)
    tiles = {
        b: facts.bytes(b)
        for n in graph.nodes
        if _root_of(graph, n.loop) == launch.name
        for b in (*n.reads, *n.writes)
        if b.space is Space.SHARED
    }
    if sum(tiles.values()) > room:
        return {}  # it does not fit even without rings: others say so
    for r in readers:
        _check_room(r, tiles, room, shared.capacity if shared else 0)
    out: dict[str, Schedule] = {}
    for r in readers:
        mine = {b for b in r.names if b in tiles}
        name = r.region.loop.name
        left = room - sum(size for b, size in tiles.items() if b not in mine)
        out[name] = scheduled(r, left, optimal)
        for s in out[name].body.storage:
            if s.buffer in tiles:
                tiles[s.buffer] = s.bytes * out[name].depth[s.name]
    return out


def scheduled(reader: Reader, capacity: int, optimal: bool = False) -> Schedule:
    """The checked schedule of one loop. ``capacity``: bytes of shared memory for the tiles that it writes."""
    body, deps = reader.body(capacity), reader.deps()
    full, every = relayed(body, deps)
    asked, wanted = (full, every) if reader.pins is None else anchored(full, every, reader.pins)
    times = timing(asked, wanted)
    if times is None:
        raise _impossible(reader, capacity)

    def made(times: Timing) -> Schedule:
        deep = deepened(asked, wanted, times)
        return together(synthesised(full, deps, deep if reader.pins is None else freed(deep)))

    def finish(schedule: Schedule) -> Schedule:
        return in_program_order(schedule) if reader.pins is None else checked(told(schedule))

    fast = finish(made(times))
    if not optimal:
        return fast
    from .optimal import best  # what the cache of answers needs is not loaded for the search alone

    return best(fast, asked, wanted, times, made, finish)


def _impossible(reader: Reader, capacity: int) -> TileError:
    """No interval is long enough: what the user fixed needs rings that are too deep, or it is a fault of ours."""
    loop, pins = reader.region.stmt, reader.pins
    if pins is None:
        return InternalError(f"{reader.region.loop.name}: no interval is long enough for it", loop.span)
    rings = ", ".join(s.name for s in reader.storage.values() if s.filled) or "no tile"
    slots = reader.pin or pins.slots
    return KernelError(
        "no schedule has these stages and this order",
        loop.span,
        why=f"they need more than {slots} slots of a ring (filled by copies: {rings}), "
        f"or more than {_kilobytes(capacity)} of shared memory",
        help="bring the stages of copies and of their readers closer together, or leave num_stages= out",
    )


def _kept(info: TargetInfo) -> int:
    """Bytes of shared memory that tiles may not take."""
    return BARRIERS if any(t.kind == "mbarrier" for t in info.tokens) else 0


def _check_room(reader: Reader, tiles: dict[Buffer, int], room: int, capacity: int) -> None:
    """Grow the rings that the user pinned, if they fit into ``room`` bytes, what is left of ``capacity``.

    Raises:
        KernelError: they do not.
    """
    rings = [s for s in reader.storage.values() if s.least > 1 and s.buffer is not None]
    for s in rings:
        assert s.buffer is not None
        tiles[s.buffer] = s.bytes * s.least
    if sum(tiles.values()) > room:
        raise KernelError(
            f"{_named(rings, room, tiles)} of {_kilobytes(capacity)}",
            reader.region.stmt.span,
            why=f"num_stages={reader.pin} keeps as many tiles of each asynchronous copy in shared memory",
            help="take fewer stages or smaller tiles",
        )


def _named(rings: list[Storage], room: int, tiles: Mapping[Buffer, int]) -> str:
    """What does not fit, in words: one ring if it alone is too large."""
    worst = max(rings, key=lambda s: s.bytes * s.least)
    if worst.bytes * worst.least > room or len(tiles) == 1:
        return f"{worst.name} ring of {worst.least} needs {_kilobytes(worst.bytes * worst.least)}"
    names = ", ".join(s.name for s in rings)
    others = " and the other shared tiles" if len(tiles) > len(rings) else ""
    return f"rings of {worst.least} ({names}){others} need {_kilobytes(sum(tiles.values()))}"


def _kilobytes(size: int) -> str:
    return f"{size / 1024:.4g} KB"


def _root(graph: Graph, region: Loop) -> str:
    return _root_of(graph, region.name)


def _root_of(graph: Graph, name: str) -> str:
    """The outermost region around one."""
    while name and (parent := graph.loop(name).parent):
        name = parent
    return name


def _is_innermost(graph: Graph, region: Loop, engine_of: Mapping[str, str]) -> bool:
    """Whether an op directly in the loop is asynchronous, and none in a loop inside it."""
    loops = {n.loop for n in graph.nodes if n.name in engine_of}
    return region.name in loops and not any(
        region.name in _around(graph, other) for other in loops if isinstance(graph.loop(other).stmt, For)
    )


def _around(graph: Graph, name: str) -> Iterator[str]:
    """Regions around one, innermost first."""
    while name := graph.loop(name).parent:
        yield name
