"""Which loops of a launch two roles can walk, one that copies ahead and one that computes; and what a loop finds prepared."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from ...expr import Buffer, Space, loads
from ...program import Alloc, Bind, Fill, For, Gemm, If, Launch, Stmt
from ...program.visit import expressions, read_buffers, statements, written_buffers
from .context import Context


def ops_of(context: Context, loop: For) -> dict[str, Stmt]:
    """The statement of each op of a scheduled loop."""
    graph = context.plan.graph
    return {
        graph.names.get(id(s)) or graph.region_of(s): s for s in loop.body if not isinstance(s, Bind | Alloc)
    }


def walkable(context: Context, launch: Launch) -> dict[str, For]:
    """The scheduled loops of a launch by name; none if one of them cannot be walked by two roles."""
    info, plan = context.plan.info, context.plan
    inside = {id(s) for s in statements(launch.body)}
    loops = {
        r.name: r.stmt
        for r in plan.graph.loops
        if isinstance(r.stmt, For) and id(r.stmt) in inside and r.name in plan.schedules
    }
    room = info.bulk is not None and launch.thread_count + info.bulk.group <= info.max_threads
    alike = all(_steps_only(context, s) for s in loops.values()) and _sliceable(launch, loops)
    return loops if room and alike else {}


def around(s: Stmt, holds: Callable[[Stmt], bool], part: Callable[[Stmt], Iterator[Stmt]]) -> Iterator[Stmt]:
    """A loop or branch around what a role does, with its part of the body alone; and a scalar that this may need."""
    match s:
        case For() if holds(s):
            yield replace(s, body=tuple(t for u in s.body for t in part(u)), kind="serial")
        case If() if holds(s):
            then, other = (tuple(t for u in body for t in part(u)) for body in (s.then, s.other))
            yield replace(s, then=then, other=other)
        case Bind():
            yield s
        case _:
            return


def has_products(context: Context, launch: Launch) -> bool:
    """Whether the matrix engine has something to do in a launch."""
    inside = {id(s) for s in statements(launch.body)}
    return any(
        n.name in context.plan.engines and id(n.stmt) in inside and isinstance(n.stmt, Gemm)
        for n in context.plan.graph.nodes
    )


def is_zero(s: Fill) -> bool:
    """Whether a fill sets a whole tile to zero."""
    return s.dst.whole and getattr(s.value, "value", None) == 0


def _steps_only(context: Context, loop: For) -> bool:
    """Whether each statement of the body is one op of the schedule, or a scalar made of numbers that both roles know."""
    graph = context.plan.graph
    schedule = context.plan.schedules[graph.region_of(loop)]
    for s in loop.body:
        scalar = isinstance(s, Bind) and graph.names[id(s)] in schedule.everywhere
        op = graph.names.get(id(s)) or graph.region_of(s)
        if not (scalar or isinstance(s, Alloc) or op in schedule.ops):
            return False
    return len({graph.names[id(s)] for s in loop.body if id(s) in graph.names}) == sum(
        id(s) in graph.names for s in loop.body
    )


def _sliceable(launch: Launch, loops: dict[str, For]) -> bool:
    """Whether a thread that has no tiles can walk to all loops: what it must know comes from parameters alone."""
    own = {id(s) for s in loops.values()}
    written = {b.storage for s in statements(launch.body) for b in written_buffers(s)}

    def around(body: Sequence[Stmt]) -> bool:
        for s in body:
            if id(s) in own:
                known = list(read_buffers(replace(s, body=())))
            elif isinstance(s, Bind):
                known = list(read_buffers(s))
            elif any(id(t) in own for t in statements((s,))):
                if not isinstance(s, For | If):
                    return False
                inner = (s.body,) if isinstance(s, For) else (s.then, s.other)
                if not all(around(b) for b in inner):
                    return False
                known = [b for x in expressions(s) for b in (load.buffer for load in loads(x))]
            else:
                continue
            if any(b.space is not Space.GLOBAL or b.storage in written for b in known):
                return False
        return True

    return around(launch.body)


def fresh_fills(body: Sequence[Stmt], loop: For, on_engine: Callable[[Gemm], bool]) -> Iterator[Fill]:
    """What sets accumulators to zero just before the loop, in which only one product uses each, one of the engine's."""
    at = next((n for n, s in enumerate(body) if s is loop), None)
    if at is None:
        return
    later: set[Buffer] = set()
    for s in reversed(body[:at]):
        if not isinstance(s, Fill | Alloc | Bind):
            return
        if isinstance(s, Fill) and is_zero(s) and s.dst.buffer.storage not in later:
            c = s.dst.buffer
            users = [t for t in statements(loop.body) if c.storage in _touched(t)]
            if len(users) == 1 and isinstance(u := users[0], Gemm) and u.c.buffer == c and on_engine(u):
                yield s
        later |= _touched(s)


def _touched(s: Stmt) -> set[Buffer]:
    return {b.storage for b in (*read_buffers(s), *written_buffers(s))}
