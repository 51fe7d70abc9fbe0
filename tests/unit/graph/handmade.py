"""Tile programs written node by node, for tests of what comes after the front end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tile_core.dtypes import INT32, dtype
from tile_core.expr import Buffer, Expr, Load, Space, Var, call, cast, const, expr, maximum
from tile_core.program import (
    Alloc,
    Atomic,
    AtomicTile,
    Copy,
    Fill,
    For,
    Gemm,
    Launch,
    Parallel,
    Param,
    Reduce,
    Region,
    Stmt,
    Store,
    TileProgram,
)
from tile_core.span import Span

Dim = int | Expr
Index = int | Expr | slice


@dataclass
class Builder:
    """Collects parameters and statements; every statement gets a line of its own."""

    name: str
    params: list[Param] = field(default_factory=list)
    body: list[Stmt] = field(default_factory=list)
    count: int = 0

    def span(self) -> Span:
        self.count += 1
        return Span(f"{self.name}.py", self.count, 5, self.count, 20, self.name)

    def number(self) -> int:
        self.count += 1
        return self.count

    def tensor(self, name: str, *shape: Dim, type: str = "float16") -> Buffer:
        b = Buffer(name, shape, dtype(type), Space.GLOBAL, span=self.span())
        self.params.append(Param(name, b))
        return b

    def tile(self, name: str, *shape: int, type: str = "float32", space: Space = Space.FRAGMENT) -> Buffer:
        b = Buffer(name, shape, dtype(type), space, number=self.number(), span=self.span())
        self.body.append(Alloc(b, span=b.span))
        return b

    def shared(self, name: str, *shape: int, type: str = "float16") -> Buffer:
        return self.tile(name, *shape, type=type, space=Space.SHARED)

    def var(self, name: str) -> Var:
        return Var(name, INT32, self.number())

    def add(self, make: Callable[..., Stmt], *arguments: Any, **keywords: Any) -> None:
        self.body.append(make(*arguments, **keywords, span=self.span()))

    def copy(self, src: Region | Buffer, dst: Region | Buffer) -> None:
        self.add(Copy, region(src), region(dst))

    def fill(self, dst: Region | Buffer, value: float) -> None:
        r = region(dst)
        self.add(Fill, r, const(value, r.dtype))

    def gemm(self, a: Region | Buffer, b: Region | Buffer, c: Region | Buffer, **keywords: Any) -> None:
        self.add(Gemm, region(a), region(b), region(c), **keywords)

    def reduce(
        self, kind: str, src: Region | Buffer, dst: Region | Buffer, axis: int, clear: bool = True
    ) -> None:
        self.add(Reduce, kind, region(src), region(dst), axis, clear)

    def atomic_add(self, dst: Region | Buffer, value: Region | Buffer) -> None:
        self.add(AtomicTile, "add", region(dst), region(value))

    def parallel(self, extents: Sequence[int], body: Callable[..., Stmt | Sequence[Stmt]]) -> None:
        vars = tuple(self.var("ijkl"[k]) for k in range(len(extents)))
        made = body(*vars)
        self.add(Parallel, vars, tuple(extents), tuple(made) if isinstance(made, (list, tuple)) else (made,))

    def loop(
        self, extent: Dim, body: Callable[[Var], None], kind: str = "pipelined", stages: int = 3
    ) -> None:
        k = self.var("k")
        outside, self.body = self.body, []
        body(k)
        inside, self.body = self.body, outside
        stages = stages if kind == "pipelined" else 0
        self.add(For, k, const(0), extent, tuple(inside), kind, num_stages=stages)

    def blocks(self, *grid: Dim) -> tuple[Var, ...]:
        self.grid = grid
        self.vars = tuple(Var(f"b{'xyz'[k]}", INT32, self.number()) for k in range(len(grid)))
        return self.vars

    def program(self, threads: int | None = 128, layouts: Sequence[tuple[Buffer, Any]] = ()) -> TileProgram:
        """The program: one launch, or an open program when ``threads`` is None."""
        body: tuple[Stmt, ...] = tuple(self.body)
        if threads is not None:
            body = (Launch(self.vars, self.grid, (threads,), body, layouts=tuple(layouts), span=self.span()),)
        return TileProgram(self.name, tuple(self.params), body, span=self.span())


def region(value: Region | Buffer) -> Region:
    if isinstance(value, Region):
        return value
    zeros = tuple(const(0) for _ in value.shape)
    return Region(value, zeros, value.shape, (False,) * value.ndim, whole=True)


def part(buffer: Buffer, *index: Index, size: Sequence[int] = ()) -> Region:
    """``buffer[index]``: slices are ranges, single values points, or starts when ``size`` gives the extents."""
    start, extent, point = [], [], []
    for d, i in enumerate(index):
        if isinstance(i, slice):
            start.append(expr(i.start or 0))
            extent.append((buffer.shape[d] if i.stop is None else i.stop) - (i.start or 0))
            point.append(False)
        else:
            start.append(expr(i))
            extent.append(size[d] if size else 1)
            point.append(not size)
    return Region(buffer, tuple(start), tuple(extent), tuple(point))


def at(buffer: Buffer, *index: Any) -> Load:
    return Load(buffer, tuple(expr(i) for i in index))


def store(buffer: Buffer, index: Sequence[Any], value: Any) -> Store:
    return Store(buffer, tuple(expr(i) for i in index), cast(value, buffer.dtype))


def gemm(
    threads: int = 128,
    m: int = 128,
    n: int = 128,
    k: int = 32,
    type: str = "float16",
    size: int = 1024,
    transpose_b: bool = False,
) -> TileProgram:
    b = Builder("gemm")
    x, y, z = (
        b.tensor("A", size, size, type=type),
        b.tensor("B", size, size, type=type),
        b.tensor("C", size, size),
    )
    bx, by = b.blocks(-(-size // n), -(-size // m))
    sx = b.shared("As", m, k, type=type)
    sy = b.shared("Bs", *((n, k) if transpose_b else (k, n)), type=type)
    acc = b.tile("acc", m, n, type="int32" if type == "int8" else "float32")
    b.fill(acc, 0)

    def step(i: Var) -> None:
        b.copy(part(x, by * m, i * k, size=(m, k)), sx)
        start = (bx * n, i * k) if transpose_b else (i * k, bx * n)
        b.copy(part(y, *start, size=sy.shape), sy)
        b.gemm(sx, sy, acc, transpose_b=transpose_b)

    b.loop(-(-size // k), step)
    b.copy(acc, part(z, by * m, bx * n, size=(m, n)))
    return b.program(threads)


def split_k(
    threads: int = 128, m: int = 64, n: int = 64, k: int = 32, parts: int = 4, size: int = 512
) -> TileProgram:
    """Each block along z sums a part of K and adds it to C atomically."""
    b = Builder("split_k")
    x, y, z = b.tensor("A", size, size), b.tensor("B", size, size), b.tensor("C", size, size, type="float32")
    bx, by, bz = b.blocks(size // n, size // m, parts)
    sx, sy, acc = b.shared("As", m, k), b.shared("Bs", k, n), b.tile("acc", m, n)
    b.fill(acc, 0)
    steps = size // k // parts

    def step(i: Var) -> None:
        at_k = (bz * steps + i) * k
        b.copy(part(x, by * m, at_k, size=(m, k)), sx)
        b.copy(part(y, at_k, bx * n, size=(k, n)), sy)
        b.gemm(sx, sy, acc)

    b.loop(steps, step)
    b.atomic_add(part(z, by * m, bx * n, size=(m, n)), acc)
    return b.program(threads)


def gemm_bias_rowmax(threads: int = 128, m: int = 128, n: int = 176) -> TileProgram:
    b = Builder("gemm_bias_rowmax")
    x, y = b.tensor("A", 512, 512), b.tensor("B", 512, n)
    gbias, out = b.tensor("gbias", n, type="float32"), b.tensor("out", 512, type="float32")
    (bx,) = b.blocks(4)
    sx, sy, acc = b.shared("As", m, 64), b.shared("Bs", 64, n), b.tile("acc", m, n)
    bias, top = b.tile("bias", n), b.tile("top", m)
    b.fill(acc, 0)

    def step(i: Var) -> None:
        b.copy(part(x, bx * m, i * 64, size=(m, 64)), sx)
        b.copy(part(y, i * 64, 0, size=(64, n)), sy)
        b.gemm(sx, sy, acc)

    b.loop(8, step)
    b.copy(gbias, bias)
    b.parallel((m, n), lambda i, j: store(acc, (i, j), at(acc, i, j) + at(bias, j)))
    b.reduce("max", acc, top, 1)
    b.copy(top, part(out, bx * m, size=(m,)))
    return b.program(threads)


def softmax(threads: int = 128, m: int = 8, n: int = 1024) -> TileProgram:
    b = Builder("softmax")
    x, y = b.tensor("X", 4096, n), b.tensor("Y", 4096, n)
    (bx,) = b.blocks(4096 // m)
    t, top, total = b.tile("t", m, n), b.tile("top", m), b.tile("total", m)
    b.copy(part(x, bx * m, 0, size=(m, n)), t)
    b.reduce("max", t, top, 1)
    b.parallel((m, n), lambda i, j: store(t, (i, j), call("exp2", at(t, i, j) - at(top, i))))
    b.reduce("sum", t, total, 1)
    b.parallel((m, n), lambda i, j: store(t, (i, j), at(t, i, j) / at(total, i)))
    b.copy(t, part(y, bx * m, 0, size=(m, n)))
    return b.program(threads)


def layer_norm(threads: int = 128, m: int = 4, n: int = 229) -> TileProgram:
    b = Builder("layer_norm")
    x, y, gamma = b.tensor("X", 1024, n), b.tensor("Y", 1024, n), b.tensor("gamma", n, type="float32")
    (bx,) = b.blocks(1024 // m)
    t, sq, g = b.tile("t", m, n), b.tile("sq", m, n), b.tile("g", n)
    mean, var = b.tile("mean", m), b.tile("var", m)
    b.copy(part(x, bx * m, 0, size=(m, n)), t)
    b.copy(gamma, g)
    b.reduce("sum", t, mean, 1)
    b.parallel(
        (m, n),
        lambda i, j: store(sq, (i, j), (at(t, i, j) - at(mean, i) / n) * (at(t, i, j) - at(mean, i) / n)),
    )
    b.reduce("sum", sq, var, 1)
    b.parallel(
        (m, n),
        lambda i, j: store(
            t, (i, j), (at(t, i, j) - at(mean, i) / n) * call("rsqrt", at(var, i) / n + 1e-5) * at(g, j)
        ),
    )
    b.copy(t, part(y, bx * m, 0, size=(m, n)))
    return b.program(threads)


def attention(
    threads: int = 256, m: int = 128, n: int = 176, d: int = 128, length: int = 2112
) -> TileProgram:
    """Flash attention, forward, no mask: one pass over keys with a running maximum."""
    b = Builder("attention")
    q, k, v, o = (b.tensor(x, 4, 8, length, d) for x in "QKVO")
    bx, by, bz = b.blocks(-(-length // m), 8, 4)
    qs, ks, vs = b.shared("Qs", m, d), b.shared("Ks", n, d), b.shared("Vs", n, d)
    s, p, acc = b.tile("S", m, n), b.tile("P", m, n, type="float16"), b.tile("acc", m, d)
    top, old, scale, row, total = (b.tile(x, m) for x in ("top", "old", "scale", "row", "total"))
    b.copy(part4(q, bz, by, bx * m, m), qs)
    b.fill(acc, 0)
    b.fill(total, 0)
    b.fill(top, float("-inf"))

    def step(i: Var) -> None:
        b.copy(part4(k, bz, by, i * n, n), ks)
        b.fill(s, 0)
        b.gemm(qs, ks, s, transpose_b=True)
        b.copy(part4(v, bz, by, i * n, n), vs)
        b.copy(top, old)
        b.reduce("max", s, top, 1, clear=False)
        b.parallel((m,), lambda i: store(scale, (i,), call("exp2", at(old, i) * 0.125 - at(top, i) * 0.125)))
        b.parallel(
            (m, n), lambda i, j: store(s, (i, j), call("exp2", at(s, i, j) * 0.125 - at(top, i) * 0.125))
        )
        b.reduce("sum", s, row, 1)
        b.parallel((m,), lambda i: store(total, (i,), at(total, i) * at(scale, i) + at(row, i)))
        b.copy(s, p)
        b.parallel((m, d), lambda i, j: store(acc, (i, j), at(acc, i, j) * at(scale, i)))
        b.gemm(p, vs, acc)

    b.loop(-(-length // n), step)
    b.parallel((m, d), lambda i, j: store(acc, (i, j), at(acc, i, j) / at(total, i)))
    b.copy(acc, part4(o, bz, by, bx * m, m))
    return b.program(threads)


def part4(x: Buffer, bz: Expr, by: Expr, row: Expr, rows: int) -> Region:
    zero = const(0)
    return Region(x, (bz, by, row, zero), (1, 1, rows, x.shape[3]), (True, True, False, False))


def rotation(n: int = 128, threads: int = 128) -> TileProgram:
    b = Builder("rotation")
    x, out = b.tensor("X", n, type="float32"), b.tensor("out", n, type="float32")
    b.blocks(1)
    f = b.tile("f", n)
    b.copy(x, f)
    b.parallel((n,), lambda i: store(out, (i,), at(f, (i + 1) % n)))
    return b.program(threads)


def slice_fill(threads: int = 128) -> TileProgram:
    """Rows 3..10 of a (32, 64) fragment are filled: the slice is not aligned with anything."""
    b = Builder("slice_fill")
    x, y = b.tensor("X", 32, 64, type="float32"), b.tensor("Y", 32, 64, type="float32")
    b.blocks(1)
    f = b.tile("f", 32, 64)
    b.copy(x, f)
    b.fill(part(f, slice(3, 11), slice(None)), 0)
    b.copy(f, y)
    return b.program(threads)


def reduce48() -> TileProgram:
    b = Builder("reduce48")
    x, out = b.tensor("X", 1, 48, type="float32"), b.tensor("out", 1, type="float32")
    b.blocks(1)
    t, total = b.tile("t", 1, 48), b.tile("total", 1)
    b.copy(x, t)
    b.reduce("sum", t, total, 1)
    b.copy(total, out)
    return b.program(48)


def table_lookup(k: int = 32, threads: int = 128) -> TileProgram:
    b = Builder("table")
    gt, y = b.tensor("T", k, type="float32"), b.tensor("Y", 16, 128, type="float32")
    b.blocks(1)
    table, x = b.tile("table", k), b.tile("x", 16, 128)
    b.copy(gt, table)
    b.fill(x, 1)
    b.parallel((16, 128), lambda i, j: store(x, (i, j), at(x, i, j) * at(table, j % k)))
    b.copy(x, y)
    return b.program(threads)


def transpose(threads: int = 128, n: int = 64, type: str = "float16") -> TileProgram:
    b = Builder("transpose")
    x, y = b.tensor("X", 1024, 1024, type=type), b.tensor("Y", 1024, 1024, type=type)
    bx, by = b.blocks(1024 // n, 1024 // n)
    s = b.shared("s", n, n, type=type)
    b.copy(part(x, by * n, bx * n, size=(n, n)), s)
    b.parallel((n, n), lambda i, j: store(y, (bx * n + i, by * n + j), at(s, j, i)))
    return b.program(threads)


def histogram(threads: int = 128) -> TileProgram:
    b = Builder("histogram")
    x, out = b.tensor("X", 4096, type="int32"), b.tensor("out", 256, type="int32")
    (bx,) = b.blocks(32)
    b.parallel((128,), lambda i: Atomic("add", out, (at(x, bx * 128 + i) % 256,), const(1)))
    return b.program(threads)


def running_maximum(rows: int = 4) -> TileProgram:
    """Open: no launch is written."""
    b = Builder("running_maximum")
    x, y = b.tensor("X", 64, 64, type="float32"), b.tensor("Y", 64, 64, type="float32")
    t = b.tile("t", rows, 64)
    b.copy(x, t)
    b.parallel((rows, 64), lambda i, j: store(t, (i, j), maximum(at(t, i, j), 0.0)))
    b.copy(t, y)
    return b.program(None)
