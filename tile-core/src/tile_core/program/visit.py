"""Walk and rewrite tile programs: what a statement contains, reads, writes and defines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import wraps
from typing import TypeVar

from ..expr import Buffer, Expr, Var, loads
from .nodes import (
    Alloc,
    Assert,
    Assume,
    Atomic,
    AtomicTile,
    Bind,
    Break,
    Breakpoint,
    Continue,
    Copy,
    Fill,
    For,
    Gemm,
    If,
    Invoke,
    Launch,
    Parallel,
    Place,
    Print,
    Quantify,
    Reduce,
    Region,
    Scan,
    Stmt,
    Store,
    Sync,
    Transpose,
    While,
)

Body = tuple[Stmt, ...]
Found = TypeVar("Found")


def bodies(s: Stmt) -> tuple[Body, ...]:
    """The statement lists inside ``s``."""
    match s:
        case For() | While() | Parallel() | Launch():
            return (s.body,)
        case If():
            return (s.then, s.other)
        case _:
            return ()


def statements(body: Iterable[Stmt]) -> Iterator[Stmt]:
    """Every statement, outermost first, in program order."""
    for s in body:
        yield s
        for inner in bodies(s):
            yield from statements(inner)


def read_regions(s: Stmt) -> tuple[Region, ...]:
    """Regions that a tile op reads."""
    match s:
        case Copy() | Transpose() | Quantify() | Scan():
            return (s.src,)
        case Reduce():
            return (s.src,) if s.clear else (s.src, s.dst)
        case Gemm():
            return (s.a, s.b) if s.clear else (s.a, s.b, s.c)
        case AtomicTile():
            return (s.value, s.dst)
        case Print():
            return tuple(v for v in s.values if isinstance(v, Region))
        case _:
            return ()


def written_regions(s: Stmt) -> tuple[Region, ...]:
    """Regions that a tile op writes."""
    match s:
        case Copy() | Transpose() | Scan() | Reduce() | Fill() | AtomicTile():
            return (s.dst,)
        case Gemm():
            return (s.c,)
        case _:
            return ()


def expressions(s: Stmt) -> Iterator[Expr]:
    """Expressions that ``s`` itself evaluates; not those of the statements inside it."""
    match s:
        case Fill():
            yield s.value
        case Store():
            yield from s.indices
            yield s.value
        case Bind():
            yield s.value
        case Atomic():
            yield from s.indices
            if s.value is not None:
                yield s.value
        case Parallel():
            yield from (e for e in s.extents if isinstance(e, Expr))
        case For():
            yield s.start
            if isinstance(s.extent, Expr):
                yield s.extent
        case While() | If() | Assert() | Assume():
            yield s.condition
        case Print():
            yield from (v for v in s.values if isinstance(v, Expr))
        case Invoke():
            for a in s.arguments:
                yield from a.indices if isinstance(a, Place) else (a,)
        case Launch():
            yield from (e for e in s.grid if isinstance(e, Expr))
        case _:
            pass
    for region in (*read_regions(s), *written_regions(s)):
        yield from region.start
        yield from (e for e in region.extent if isinstance(e, Expr))


def _kept(find: Callable[[Stmt], Found]) -> Callable[[Stmt], Found]:
    """What ``find`` gives for a statement, kept in it: every pass asks for it."""
    name = f"_{find.__name__}"

    @wraps(find)
    def get(s: Stmt) -> Found:
        kept = s.__dict__
        if name not in kept:
            kept[name] = find(s)
        return kept[name]

    return get


@_kept
def read_buffers(s: Stmt) -> tuple[Buffer, ...]:
    """Buffers whose elements ``s`` itself reads."""
    found = [r.buffer for r in read_regions(s)]
    found += [load.buffer for x in expressions(s) for load in loads(x)]
    if isinstance(s, Atomic) and s.op != "store":
        found.append(s.buffer)
    return (*found, *(p.buffer for p in places(s) if "r" in p.access))


@_kept
def written_buffers(s: Stmt) -> tuple[Buffer, ...]:
    """Buffers whose elements ``s`` itself writes."""
    found = [r.buffer for r in written_regions(s)]
    if isinstance(s, Store) or (isinstance(s, Atomic) and s.op != "load"):
        found.append(s.buffer)
    return (*found, *(p.buffer for p in places(s) if "w" in p.access))


@_kept
def read_storages(s: Stmt) -> frozenset[Buffer]:
    """What ``s`` and the statements in it read; of views what they view."""
    return frozenset(b.storage for t in statements((s,)) for b in read_buffers(t))


@_kept
def written_storages(s: Stmt) -> frozenset[Buffer]:
    """What ``s`` and the statements in it write; of views what they view."""
    return frozenset(b.storage for t in statements((s,)) for b in written_buffers(t))


def touched_storages(s: Stmt) -> frozenset[Buffer]:
    """What ``s`` and the statements in it read or write; of views what they view."""
    return read_storages(s) | written_storages(s)


def places(s: Stmt) -> Iterator[Place]:
    """Addresses that ``s`` gives to a function of the target."""
    if isinstance(s, Invoke):
        yield from (a for a in s.arguments if isinstance(a, Place))


def defined(s: Stmt) -> tuple[Var, ...]:
    """Variables that ``s`` gives a value: for its own bodies (loops, launches) or for what follows it."""
    match s:
        case For():
            return () if s.var is None else (s.var,)
        case Parallel():
            return s.vars
        case Launch():
            return (*s.vars, *s.thread_vars)
        case Bind():
            return (s.var,)
        case Quantify():
            return (s.result,)
        case Atomic() | Invoke():
            return () if s.result is None else (s.result,)
        case _:
            return ()


def buffers(body: Iterable[Stmt]) -> dict[Buffer, None]:
    """Every buffer named in ``body``, in order of first use; views are followed to what they view."""
    out: dict[Buffer, None] = {}
    for s in statements(body):
        found = [*read_buffers(s), *written_buffers(s)]
        if isinstance(s, Alloc):
            found.append(s.buffer)
        for b in found:
            at: Buffer | None = b
            while at is not None:
                out.setdefault(at)
                at = at.source
    return out


Change = Callable[[Expr], Expr]


def mapped_region(r: Region, change: Change, buffer: Callable[[Buffer], Buffer]) -> Region:
    return replace(
        r,
        buffer=buffer(r.buffer),
        start=tuple(change(e) for e in r.start),
        extent=tuple(change(e) if isinstance(e, Expr) else e for e in r.extent),
    )


def _mapped_argument(a: Expr | Place, change: Change, buffer: Callable[[Buffer], Buffer]) -> Expr | Place:
    if not isinstance(a, Place):
        return change(a)
    return replace(a, buffer=buffer(a.buffer), indices=tuple(change(i) for i in a.indices))


REGION_FIELDS = ("src", "dst", "a", "b", "c", "value")


def mapped(
    s: Stmt,
    change: Change,
    body: Callable[[Body], Body] = lambda b: b,
    buffer: Callable[[Buffer], Buffer] = lambda b: b,
) -> Stmt:
    """``s`` with its expressions changed by ``change``, its bodies by ``body`` and its buffers by ``buffer``."""

    def exprs(xs: Iterable[int | Expr]) -> tuple[int | Expr, ...]:
        return tuple(change(e) if isinstance(e, Expr) else e for e in xs)

    match s:
        case Copy() | Gemm() | Reduce() | Scan() | Transpose() | AtomicTile() | Quantify():
            fields = {f: getattr(s, f, None) for f in REGION_FIELDS}
            return replace(
                s, **{f: mapped_region(r, change, buffer) for f, r in fields.items() if isinstance(r, Region)}
            )
        case Fill():
            return replace(s, dst=mapped_region(s.dst, change, buffer), value=change(s.value))
        case Store():
            return replace(s, buffer=buffer(s.buffer), indices=exprs(s.indices), value=change(s.value))
        case Bind():
            return replace(s, value=change(s.value))
        case Atomic():
            value = None if s.value is None else change(s.value)
            return replace(s, buffer=buffer(s.buffer), indices=exprs(s.indices), value=value)
        case Alloc():
            return replace(s, buffer=buffer(s.buffer))
        case Parallel():
            return replace(s, extents=exprs(s.extents), body=body(s.body))
        case For():
            extent = change(s.extent) if isinstance(s.extent, Expr) else s.extent
            return replace(s, start=change(s.start), extent=extent, body=body(s.body))
        case While():
            return replace(s, condition=change(s.condition), body=body(s.body))
        case If():
            return replace(s, condition=change(s.condition), then=body(s.then), other=body(s.other))
        case Assert() | Assume():
            return replace(s, condition=change(s.condition))
        case Print():
            values = tuple(
                change(v) if isinstance(v, Expr) else mapped_region(v, change, buffer) for v in s.values
            )
            return replace(s, values=values)
        case Invoke():
            return replace(s, arguments=tuple(_mapped_argument(a, change, buffer) for a in s.arguments))
        case Launch():
            pinned = tuple((buffer(b), layout) for b, layout in s.layouts)
            return replace(s, grid=exprs(s.grid), body=body(s.body), layouts=pinned)
        case Break() | Continue() | Sync() | Breakpoint():
            return s
        case _:
            raise TypeError(type(s).__name__)
