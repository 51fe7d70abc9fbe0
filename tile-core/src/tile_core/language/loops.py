"""What a launch and a loop are while a kernel is built: what they were given, and how their bodies are opened."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..errors import KernelError
from ..expr import Const, Expr, Var, ceildiv, dim, expr, minimum
from ..program import Bind, For, If, Parallel, Stmt
from .scopes import BRANCH, DEVICE, ONCE, PARALLEL, LaunchState, build_launch, current
from .several import is_tuple

if TYPE_CHECKING:
    from .builder import Builder

DEFAULT_THREADS = 128
GREATEST_EXTENT = 2**31 - 1  # of a grid: block numbers are int32


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


def _outside(what: str) -> KernelError:
    return KernelError(
        f"{what} stands outside of a kernel", help="put it into a function marked @T.prim_func"
    )


def _index_type(start: Any, count: Any, step: int) -> str:
    """int32, or int64 if the bounds of a loop are, or are numbers that need it."""
    for x in (start, count):
        if isinstance(x, Expr) and x.dtype.bits > 32:
            return "int64"
    first = start if isinstance(start, int) else 0
    last = first + step * (count if isinstance(count, int) else 1)
    return "int32" if all(abs(x) <= GREATEST_EXTENT for x in (first, last)) else "int64"


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
        b.body.append(Parallel(vars, tuple(dim(e) for e in self.extents), tuple(body), self.hints, span=span))

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


def counted(start: Any, stop: Any = None, step: Any = None) -> tuple[Any, Any, int]:
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
