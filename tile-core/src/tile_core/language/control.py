"""The launch of a kernel and its loops."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any

from ..errors import KernelError
from ..expr import Const, Expr, Var, ceildiv, dim, expr, minimum
from ..program import Bind, For, If, Stmt
from ..program import Parallel as ParallelLoop
from .builder import Builder, current
from .scopes import BRANCH, DEVICE, ONCE, PARALLEL, LaunchState, build_launch
from .several import is_tuple, several


def _named(names: Any, count: int, default: str) -> list[str]:
    found: list[str] = [names] if isinstance(names, str) else list(names or ())
    plain = ["x", "y", "z", "w"]
    return found if len(found) == count else [default + (plain[n] if n < 4 else str(n)) for n in range(count)]


def _many(count: int, one: str, several: str) -> str:
    return f"{count} {one if count == 1 else several}"


def _one_or_all(values: Sequence[Any], names: Any) -> Any:
    """One value alone, unless it is unpacked: ``as (bx,)``."""
    return values[0] if len(values) == 1 and not isinstance(names, tuple) else list(values)


@dataclass(frozen=True)
class LaunchSpec:
    """What ``T.Kernel`` was given."""

    grid: tuple[Any, ...]
    threads: tuple[int, ...] | None

    @contextmanager
    def open(self, b: Builder, names: Any = None) -> Generator[Any, None, None]:
        if is_tuple(names) and len(names) != len(self.grid):
            count = _many(len(self.grid), "dimension", "dimensions")
            raise KernelError(f"the grid has {count}, {len(names)} names are given")
        if b.launch is not None:
            raise KernelError("a T.Kernel stands inside another one")
        if len(b.scopes) > 1:
            raise KernelError("a T.Kernel stands inside a loop or branch", help="loops go inside the kernel")
        span = b.span()
        vars = tuple(b.var(n) for n in _named(names, len(self.grid), "b"))
        b.launch = state = LaunchState(vars, tuple(dim(g) for g in self.grid), self.threads)
        with b.scope(ONCE) as body:
            yield _one_or_all(vars, names)
        b.launch = None
        b.body.append(build_launch(state, body, span, DEFAULT_THREADS))

    def __enter__(self) -> Any:
        raise _outside("T.Kernel")

    def __exit__(self, *_: Any) -> None:
        return None


DEFAULT_THREADS = 128
GREATEST_EXTENT = 2**31 - 1  # of a grid: block numbers are int32


def _outside(what: str) -> KernelError:
    return KernelError(
        f"{what} stands outside of a kernel", help="put it into a function marked @T.prim_func"
    )


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


def _index_type(start: Any, count: Any, step: int) -> str:
    """int32, or int64 if the bounds of a loop are, or are numbers that need it."""
    for x in (start, count):
        if isinstance(x, Expr) and x.dtype.bits > 32:
            return "int64"
    first = start if isinstance(start, int) else 0
    last = first + step * (count if isinstance(count, int) else 1)
    return "int32" if all(abs(x) <= GREATEST_EXTENT for x in (first, last)) else "int64"


def _counts(threads: Any) -> tuple[int, ...]:
    given = several(threads)
    sizes = [dim(t) if hasattr(t, "__index__") and not isinstance(t, bool) else None for t in given]
    counts = tuple(n for n in sizes if isinstance(n, int) and n > 0)
    if not 1 <= len(given) <= 3 or len(counts) != len(given):
        raise KernelError(f"threads is one to three positive numbers, not {threads!r}")
    return counts


@dataclass(frozen=True)
class LoopSpec:
    """A loop over index values that runs on the device. Iterate over it, or open it with ``with`` to leave the index out."""

    kind: str
    start: Any = 0
    extents: tuple[Any, ...] = ()
    step: int = 1
    num_stages: int = 0
    stage: tuple[int, ...] = ()
    order: tuple[int, ...] = ()
    hints: tuple[tuple[str, Any], ...] = ()
    tiles: Tiles | None = None

    def __iter__(self) -> Iterator[Any]:
        with self.open(current(), None) as value:
            yield value

    def __enter__(self) -> Any:
        raise _outside(f"a {self.kind} loop")

    def __exit__(self, *_: Any) -> None:
        return None

    def open(self, b: Builder, names: Any = None) -> AbstractContextManager[Any]:
        """The context in which the body is built; its value is the index (a list for several)."""
        count = len(self.extents) if self.tiles is None else len(self.tiles.domain)
        if is_tuple(names) and len(names) != count:
            raise KernelError(
                f"the loop has {_many(count, 'index', 'indices')}, {len(names)} names are given"
            )
        if self.kind == "parallel":
            return self._parallel(b, names)
        if self.tiles is not None:
            return self._persistent(b, names)
        return self._nest(b, names, 0, [])

    @contextmanager
    def _parallel(self, b: Builder, names: Any) -> Generator[Any, None, None]:
        b.no_parallel("T.Parallel")
        span = b.span()
        vars = tuple(
            b.var(n, _index_type(0, e, 1))
            for n, e in zip(_named(names, len(self.extents), "i"), self.extents, strict=True)
        )
        with b.scope(PARALLEL) as body:
            yield _one_or_all(vars, names)
        b.body.append(
            ParallelLoop(vars, tuple(dim(e) for e in self.extents), tuple(body), self.hints, span=span)
        )

    @contextmanager
    def _nest(self, b: Builder, names: Any, depth: int, found: list[Var]) -> Generator[Any, None, None]:
        span = b.span()
        if self.kind in ("pipelined",):
            b.no_parallel("T.Pipelined")
        implicit = names is None and b.launch is None and self.kind == "pipelined"
        type = _index_type(self.start, self.extents[depth], self.step)
        var = None if implicit else b.var(_named(names, len(self.extents), "i")[depth], type)
        if var is not None:
            found.append(var)
        with b.scope(DEVICE) as body:
            if depth + 1 < len(self.extents):
                with self._nest(b, names, depth + 1, found) as value:
                    yield value
            else:
                yield _one_or_all(found, names) if found else None
        b.body.append(self._loop(var, depth, body, span))

    def _loop(self, var: Var | None, depth: int, body: Sequence[Stmt], span: Any) -> For:
        return For(
            var,
            expr(self.start),
            dim(self.extents[depth]),
            tuple(body),
            self.kind,
            self.step,
            self.num_stages,
            self.stage,
            self.order,
            self.hints,
            span=span,
        )

    @contextmanager
    def _persistent(self, b: Builder, names: Any) -> Generator[Any, None, None]:
        tiles = self.tiles
        if tiles is None:
            raise KernelError("not a persistent loop")
        span = b.span()
        wave = b.var("wave")
        with b.scope(DEVICE) as body:
            number = expr(tiles.wave_size) * wave + expr(tiles.index)
            linear = Var("tile", number.dtype, b.unique("tile"))
            b.emit(Bind(linear, number))
            with b.scope(BRANCH) as inner:
                coordinates = [
                    self._bound(b, n, x)
                    for n, x in zip(
                        _named(names, len(tiles.domain), "t"), tiles.coordinates(linear), strict=True
                    )
                ]
                yield _one_or_all(coordinates, names)
            b.emit(If(expr(linear) < tiles.count, tuple(inner), span=span))
        waves = dim(ceildiv(tiles.count, tiles.wave_size))
        kind = "pipelined" if self.num_stages else "serial"
        b.body.append(For(wave, expr(0), waves, tuple(body), kind, num_stages=self.num_stages, span=span))

    @staticmethod
    def _bound(b: Builder, name: str, value: Expr) -> Var:
        var = Var(name, value.dtype, b.unique(name))
        b.emit(Bind(var, value))
        return var


@dataclass(frozen=True)
class Tiles:
    """The tiles that blocks of one wave walk together: ``domain`` extents, in groups of ``group`` along the first."""

    domain: tuple[int | Expr, ...]
    wave_size: Any
    index: Any
    group: int
    count: int | Expr = field(init=False)

    def __post_init__(self) -> None:
        count: Any = 1
        for d in self.domain:
            count = count * d
        object.__setattr__(self, "count", dim(count))

    def coordinates(self, linear: Var) -> list[Expr]:
        """Tile ``linear`` of the walk: ``group`` values of the first dimension change fastest, the last group may be smaller."""
        first, rest = self.domain[0], self.domain[1:]
        inner: Any = 1
        for d in rest:
            inner = inner * d
        span = self.group * inner
        chunk, within = linear // span, linear % span
        height = minimum(self.group, expr(first) - chunk * self.group)
        out: list[Expr] = [chunk * self.group + within % height]
        place: Expr = within // height
        backwards: list[Expr] = []
        for d in reversed(rest):
            backwards.append(place % d)
            place = place // d
        return [*out, *reversed(backwards)]


def _annotations(**values: Any) -> tuple[tuple[str, Any], ...]:
    return tuple((k, v) for k, v in values.items() if v is not None)


def _range(start: Any, stop: Any, step: Any) -> tuple[Any, Any, int]:
    """(start, number of iterations, step) of a Python range."""
    if stop is None:
        start, stop = 0, start
    step = 1 if step is None else step
    if isinstance(step, Const):
        step = int(step.value)
    if not isinstance(step, int) or step == 0:
        raise KernelError("the step of a loop is a nonzero number known while the kernel is built")
    first, last = dim(start), dim(stop)
    distance = expr(last) - first if step > 0 else expr(first) - last
    count = dim(distance if abs(step) == 1 else ceildiv(distance, abs(step)))
    return first, max(0, count) if isinstance(count, int) else count, step


def serial(
    start: Any, stop: Any = None, step: Any = None, *, annotations: dict[str, Any] | None = None
) -> Any:
    """A plain loop, one iteration after the other: ``for i in T.serial(n)``; arguments as of ``range``."""
    first, count, by = _range(start, stop, step)
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
    first, count, by = _range(start, stop, step)
    hints = _annotations(explicit=explicit or None, unroll_factor=unroll_factor, **(annotations or {}))
    return LoopSpec("unroll", first, (count,), by, hints=hints)


def vectorized(start: Any, stop: Any = None, *, annotations: dict[str, Any] | None = None) -> Any:
    """A loop whose iterations are lanes of vector instructions where the target can; they must be independent."""
    first, count, _ = _range(start, stop, None)
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
    ``stage`` and ``order`` pin the schedule: one number for each statement of the body. In a kernel without ``T.Kernel``
    write ``with T.Pipelined(...):``; what the loop runs over is then inferred.

    Raises:
        KernelError: a negative number of stages, or ``order`` without ``stage``.
    """
    if num_stages < 0:
        raise KernelError(f"num_stages is 0 or more, not {num_stages}")
    if (order is None) != (stage is None) or len(order or ()) != len(stage or ()):
        raise KernelError("order and stage go together, one number for each statement of the loop")
    first, count, _ = _range(start, stop, None)
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
