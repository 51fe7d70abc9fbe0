"""The launch of a kernel and its loops, as a kernel writes them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from ..errors import KernelError
from ..expr import Expr, Var, dim
from .builder import current
from .loops import GREATEST_EXTENT, LaunchSpec, LoopSpec, Tiles, counted
from .scopes import LaunchState
from .several import several


def Kernel(*grid: Any, threads: int | Sequence[int] | None = None) -> AbstractContextManager[Any]:
    """One grid of blocks: ``with T.Kernel(T.ceildiv(N, 128), T.ceildiv(M, 128), threads=128) as (bx, by):``.

    ``grid``: one to three extents, ints or expressions over symbolic dimensions; 0 means that nothing runs.
    ``threads``: threads of a block, one to three extents (None: the target's choice). Gives the block numbers, one alone
    or a list.

    Raises:
        KernelError: no extent or more than three, a negative one, or a thread count that is not positive.
    """
    if not 1 <= len(grid) <= 3:
        raise KernelError(f"a grid has one to three extents, not {len(grid)}")
    sizes = tuple(dim(g) for g in grid)
    if bad := [g for g in sizes if isinstance(g, int) and g < 0]:
        raise KernelError(f"a grid extent is negative: {bad[0]}")
    if bad := [g for g in sizes if isinstance(g, int) and g > GREATEST_EXTENT]:
        raise KernelError(f"a grid extent is {bad[0]}, block numbers are int32: at most {GREATEST_EXTENT}")
    block = None if threads is None else _counts(threads)
    return LaunchSpec(sizes, block)


def _counts(threads: Any) -> tuple[int, ...]:
    given = several(threads)
    sizes = [dim(t) if hasattr(t, "__index__") and not isinstance(t, bool) else None for t in given]
    counts = tuple(n for n in sizes if isinstance(n, int) and n > 0)
    if not 1 <= len(given) <= 3 or len(counts) != len(given):
        raise KernelError(f"threads is one to three positive numbers, not {threads!r}")
    return counts


def _annotations(**values: Any) -> tuple[tuple[str, Any], ...]:
    return tuple((k, v) for k, v in values.items() if v is not None)


def serial(
    start: Any, stop: Any = None, step: Any = None, *, annotations: dict[str, Any] | None = None
) -> Any:
    """A plain loop, one iteration after the other: ``for i in T.serial(n)``; arguments as of ``range``."""
    first, count, by = counted(start, stop, step)
    return LoopSpec("serial", first, (count,), by, hints=_annotations(**(annotations or {})))


def unroll(
    start: Any,
    stop: Any = None,
    step: Any = None,
    *,
    explicit: bool = False,
    unroll_factor: int | None = None,
    annotations: dict[str, Any] | None = None,
) -> Any:
    """A serial loop that a target should unroll, by ``unroll_factor`` if given. ``explicit``: already in the source text."""
    first, count, by = counted(start, stop, step)
    hints = _annotations(explicit=explicit or None, unroll_factor=unroll_factor, **(annotations or {}))
    return LoopSpec("unroll", first, (count,), by, hints=hints)


def vectorized(start: Any, stop: Any = None, *, annotations: dict[str, Any] | None = None) -> Any:
    """A loop whose iterations are lanes of vector instructions where the target can; they must be independent."""
    first, count, _ = counted(start, stop)
    return LoopSpec("vectorized", first, (count,), 1, hints=_annotations(**(annotations or {})))


def grid(*extents: Any) -> Any:
    """Nested serial loops: ``for i, j in T.grid(4, 8)``."""
    if not extents:
        raise KernelError("T.grid needs at least one extent")
    return LoopSpec("serial", 0, tuple(dim(e) for e in extents))


def Parallel(
    *extents: Any,
    coalesced_width: int | None = None,
    loop_layout: Any = None,
    prefer_async: bool | None = None,
    annotations: dict[str, Any] | None = None,
) -> Any:
    """A loop nest over single elements, spread over the threads of the block: ``for i, j in T.Parallel(128, 64):``.

    The iterations have no order and must not depend on each other. Inside stand element statements only, no tile ops.
    ``coalesced_width``: vector width wished for global accesses; ``loop_layout``: pin which thread runs what.
    """
    if not extents:
        raise KernelError("T.Parallel needs at least one extent")
    hints = _annotations(
        coalesced_width=coalesced_width,
        loop_layout=loop_layout,
        prefer_async=prefer_async,
        **(annotations or {}),
    )
    return LoopSpec("parallel", 0, tuple(dim(e) for e in extents), hints=hints)


def Pipelined(
    start: Any,
    stop: Any = None,
    num_stages: int = 0,
    order: Sequence[int] | None = None,
    stage: Sequence[int] | None = None,
    *,
    annotations: dict[str, Any] | None = None,
) -> Any:
    """A loop whose iterations may overlap: ``for k in T.Pipelined(T.ceildiv(K, 32), num_stages=3):``.

    The result is that of running them one after the other. ``num_stages``: iterations in flight (0: no overlap).
    ``stage`` and ``order``, one number for each statement of the body (names of values are none), fix the schedule: step k of the
    loop runs iteration k - stage of each statement, those of one group of threads in this order. -1 leaves a statement to
    inference. Without ``num_stages`` a tile that copies fill gets as many slots as the stages need.
    In a kernel without ``T.Kernel`` write ``with T.Pipelined(...):``; what the loop runs over is then inferred.

    Raises:
        KernelError: a negative number of stages, or ``order`` without ``stage``; when compiled, a stage or an order in which a
            statement runs before what it needs.
    """
    if num_stages < 0:
        raise KernelError(f"num_stages is 0 or more, not {num_stages}")
    if (order is None) != (stage is None) or len(order or ()) != len(stage or ()):
        raise KernelError("order and stage go together, one number for each statement of the loop")
    first, count, _ = counted(start, stop)
    return LoopSpec(
        "pipelined",
        first,
        (count,),
        num_stages=num_stages,
        stage=tuple(stage or ()),
        order=tuple(order or ()),
        hints=_annotations(**(annotations or {})),
    )


def Persistent(
    domain: Sequence[Any], wave_size: Any, index: Any, group_size: int = 8, num_stages: int = 0
) -> Any:
    """Walk the tiles of ``domain`` with a grid of ``wave_size`` blocks of which this is number ``index``.

    Gives one coordinate for each extent of ``domain``. ``group_size`` values of the first dimension are visited before the next
    one advances, for reuse in the last-level cache.

    Raises:
        KernelError: an empty domain or a group size that is not positive.
    """
    if not domain or group_size < 1:
        raise KernelError("T.Persistent needs a domain and a positive group_size")
    tiles = Tiles(tuple(dim(d) for d in domain), wave_size, index, group_size)
    return LoopSpec("serial", num_stages=num_stages, tiles=tiles)


def get_thread_binding(dim: int = 0) -> Expr:
    """This thread's number along dimension ``dim`` of the block; statements outside tile ops are then done by each thread.

    Raises:
        KernelError: outside T.Kernel, the kernel was not given ``threads=``, or it has no such dimension.
    """
    return _threads(dim)[dim]


def get_thread_bindings() -> list[Expr]:
    """All thread numbers of this thread. See ``get_thread_binding``."""
    return list(_threads(0))


def get_thread_extent(dim: int = 0) -> int:
    """Threads of the block along ``dim``. Raises ``KernelError`` if ``T.Kernel`` was not given ``threads=``."""
    state = _launch("a thread extent")
    if state.threads is None or not 0 <= dim < len(state.threads):
        raise KernelError(
            f"the kernel has no thread dimension {dim}", help="say it: T.Kernel(..., threads=128)"
        )
    return state.threads[dim]


def get_thread_extents() -> list[int]:
    """Threads of the block along each dimension."""
    get_thread_extent(0)
    return list(_launch("thread extents").threads or ())


def get_block_binding(dim: int = 0) -> Expr:
    """This block's number along dimension ``dim`` of the grid."""
    state = _launch("a block number")
    if not 0 <= dim < len(state.vars):
        raise KernelError(f"the grid has {len(state.vars)} dimensions, there is no dimension {dim}")
    return state.vars[dim]


def get_block_bindings() -> list[Expr]:
    """All block numbers of this block."""
    return list(_launch("block numbers").vars)


def get_block_extent(dim: int = 0) -> Any:
    """Blocks of the grid along ``dim``."""
    get_block_binding(dim)
    return _launch("a grid extent").grid[dim]


def _launch(what: str) -> LaunchState:
    state = current().launch
    if state is None:
        raise KernelError(f"{what} is asked for outside of T.Kernel")
    return state


def _threads(dim: int) -> tuple[Var, ...]:
    get_thread_extent(dim)
    state, b = _launch("a thread number"), current()
    if not state.thread_vars:
        names = ("tx", "ty", "tz")[: len(state.threads or ())]
        state.thread_vars = tuple(b.var(n) for n in names)
    return state.thread_vars
