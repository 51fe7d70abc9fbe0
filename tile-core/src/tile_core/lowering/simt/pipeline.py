"""A loop whose copies run ahead, as data: which iteration of which statement runs at each step, and what it waits for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...errors import InternalError
from ...expr import Buffer, Expr, Space, Var, loads, reads, variables
from ...inference.problem import is_whole
from ...program import Alloc, Break, Continue, Copy, For, Launch, Stmt
from ...program.visit import defined, expressions, read_buffers, statements, written_buffers
from .context import Context
from .thread_copies import copies_each, copy_size


@dataclass(frozen=True, slots=True)
class Step:
    """At step t of the kernel, statement number ``position`` of the body runs for iteration t - ``stage``.

    ``wait``: before it, at most so many groups of this thread's copies may be unfinished. ``meet``: before it, all threads meet.
    ``ahead``: it is an asynchronous copy, and a group of its own, also where its iteration does not exist.
    """

    position: int
    stage: int
    wait: int | None = None
    meet: bool = False
    ahead: bool = False


@dataclass(frozen=True)
class Pipeline:
    """The steps of one loop in the order of a thread, and how many slots the tiles have that the copies fill.

    Iteration i of a tile is in slot i mod its depth.
    """

    steps: tuple[Step, ...]
    depths: Mapping[Buffer, int]

    def __post_init__(self) -> None:
        if min((s.stage for s in self.steps), default=0) != 0 or any(
            d <= self.last for d in self.depths.values()
        ):
            raise InternalError(f"a pipeline of {self.last + 1} stages with rings of {dict(self.depths)}")

    @property
    def last(self) -> int:
        """The latest stage: so many steps pass before the first iteration is complete."""
        return max((s.stage for s in self.steps), default=0)


def pipelines(context: Context, launch: Launch) -> dict[int, Pipeline]:
    """Pipelines of the loops of a launch, by ``id`` of the loop: every copy that can run ahead does, by the user's stages."""
    if context.instructions.copies is None:
        return {}
    found: dict[int, Pipeline] = {}
    for s in statements(launch.body):
        if isinstance(s, For) and s.kind == "pipelined" and s.num_stages > 1:
            ahead = tuple(_ahead(context, launch, s))
            if ahead:
                found[id(s)] = multistage(s, ahead, _waited(context, s, ahead))
    return found


def _waited(context: Context, loop: For, ahead: Sequence[int]) -> int:
    """Groups that the copies of one iteration are for who waits."""
    copies = [s for n in ahead if isinstance(s := loop.body[n], Copy)]
    return sum(copies_each(context, s) for s in copies)


def multistage(loop: For, ahead: Sequence[int], groups: int) -> Pipeline:
    """Copies at positions ``ahead`` run ``num_stages - 1`` iterations before the rest; one meeting of the threads each step.

    At a step the copies of the last ``num_stages - 2`` steps may be on their way: the one before them is what is used now. All
    threads have it after they met, and none is still reading the slot that is filled next. ``groups``: of one iteration's copies.
    """
    depth = loop.num_stages
    left = groups * (depth - 2)
    first = min(ahead)
    copies = [Step(n, 0, left if n == first else None, n == first, True) for n in ahead]
    rest = [Step(n, depth - 1) for n in range(len(loop.body)) if n not in ahead]
    filled = [loop.body[n] for n in ahead]
    return Pipeline((*copies, *rest), {s.dst.buffer: depth for s in filled if isinstance(s, Copy)})


def _ahead(context: Context, launch: Launch, loop: For) -> Iterator[int]:
    """Positions of copies that may run ahead of their iteration."""
    inside = tuple(statements(loop.body))
    if loop.var is None or loop.stage or loop.order or any(isinstance(s, Break | Continue) for s in inside):
        return
    if any(reads(x) for x in expressions(loop)):  # how often it runs is asked at every step
        return
    changed = {b.storage for s in inside for b in written_buffers(s)}
    bound = {v for s in inside for v in defined(s)}
    for n, s in enumerate(loop.body):
        if (
            isinstance(s, Copy)
            and _own_tile(context, launch, loop, n, s)
            and s.src.buffer.storage not in changed
            and all(_known(x, bound, changed) for x in expressions(s))
            and copy_size(context, s)
        ):
            yield n


def _known(x: Expr, bound: set[Var], changed: set[Buffer]) -> bool:
    """Whether an index can be worked out iterations ahead."""
    seen = [b.buffer for b in loads(x)]
    return not any(v in bound for v in variables(x)) and all(
        b.space is Space.GLOBAL and b.storage not in changed for b in seen
    )


def _own_tile(context: Context, launch: Launch, loop: For, n: int, s: Copy) -> bool:
    """Whether the tile that a copy fills is a whole shared one, which nothing else fills and only later ops of the loop read."""
    tile = s.dst.buffer
    if s.src.buffer.space is not Space.GLOBAL or tile.space is not Space.SHARED or not is_whole(s.dst):
        return False
    if tile.source is not None or tile in context.viewed or s.src.dtype != tile.dtype:
        return False
    later = {id(t) for t in statements(loop.body[n + 1 :])}
    for t in _touching(launch.body, tile):
        writes = any(b.storage == tile for b in written_buffers(t))
        if t is not s and (writes or id(t) not in later):
            return False
    return True


def _touching(body: Sequence[Stmt], tile: Buffer) -> Iterator[Stmt]:
    """Statements that themselves read or write a tile."""
    for s in statements(body):
        if isinstance(s, Alloc):
            continue
        if any(b.storage == tile for b in (*read_buffers(s), *written_buffers(s))):
            yield s
