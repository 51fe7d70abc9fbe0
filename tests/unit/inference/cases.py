"""Kernels that inference is tried on. Loops over K or KV tiles are left out: layouts do not depend on them."""

from __future__ import annotations

from collections.abc import Callable

from targets import AMPERE, APPLE, CDNA3, HOPPER

from tile_core.expr import Space
from tile_core.hardware import TargetInfo
from tile_core.inference.maps import Index, loops
from tile_core.inference.model import Access, Elementwise, Multiply, Problem, Reduction, Tile

G, S, F = Space.GLOBAL, Space.SHARED, Space.FRAGMENT


def window(name: str, shape: tuple[int, int], bits: int, row: int) -> Tile:
    """A window of a tensor with rows of ``row`` elements."""
    return Tile(name, shape, bits, G, (row, 1), row)


def read(buffer: Tile, *index: Index) -> Access:
    return Access(buffer, index)


def write(buffer: Tile, *index: Index) -> Access:
    return Access(buffer, index, True)


def copy(name: str, source: Tile, target: Tile) -> Elementwise:
    at = loops(*target.shape)
    bulk = F not in (source.space, target.space)
    return Elementwise(name, target.shape, (read(source, *at), write(target, *at)), bulk=bulk)


def elementwise(name: str, out: Tile, *inputs: Tile, work: int = 1) -> Elementwise:
    """``out[i, j] = f(x[i, j], r[i], ...)``: a 1-D input broadcasts along the last dimension."""
    at = loops(*out.shape)
    accesses = [read(b, *at[: len(b.shape)]) for b in inputs]
    return Elementwise(name, out.shape, (*accesses, write(out, *at)), work)


def gemm(threads: int = 128, m: int = 128, n: int = 128, k: int = 32, bits: int = 16) -> Problem:
    types = ("float16", "float16", "float32") if bits == 16 else ("float32",) * 3
    a, b = window("A", (m, k), bits, 4096), window("B", (k, n), bits, 4096)
    sa, sb = Tile("As", (m, k), bits, S), Tile("Bs", (k, n), bits, S)
    c, out = Tile("acc", (m, n), 32, F), window("C", (m, n), 16, 4096)
    ops = (
        copy("load A", a, sa),
        copy("load B", b, sb),
        Multiply("gemm", sa, sb, c, types=types),
        copy("store", c, out),
    )
    return Problem("gemm", threads, ops, dict.fromkeys(("load A", "load B", "gemm"), 64))


def gemm_rr(threads: int = 128, m: int = 64) -> Problem:
    """Both operands in fragments, loaded straight from global memory."""
    a, b = window("A", (m, 64), 16, 64), window("B", (64, 64), 16, 64)
    fa, fb, c = Tile("fa", (m, 64), 16, F), Tile("fb", (64, 64), 16, F), Tile("acc", (m, 64), 32, F)
    return Problem(
        f"gemm RR, M={m}",
        threads,
        (copy("load A", a, fa), copy("load B", b, fb), Multiply("gemm", fa, fb, c)),
    )


def gemm_bias_rowmax(threads: int = 128, m: int = 128, n: int = 176) -> Problem:
    sa, sb = Tile("As", (m, 64), 16, S), Tile("Bs", (64, n), 16, S)
    acc, bias, top = Tile("acc", (m, n), 32, F), Tile("bias", (n,), 32, F), Tile("top", (m,), 32, F)
    gbias, out = Tile("gbias", (n,), 32, G), Tile("out", (m,), 32, G)
    i, j = loops(m, n)
    add = Elementwise("add bias", (m, n), (read(acc, i, j), read(bias, j), write(acc, i, j)))
    ops = (
        Multiply("gemm", sa, sb, acc),
        copy("load bias", gbias, bias),
        add,
        Reduction("row max", acc, top, 1),
        copy("store", top, out),
    )
    return Problem("gemm + bias + row max", threads, ops, {"gemm": 64})


def softmax(threads: int = 128, m: int = 8, n: int = 1024) -> Problem:
    x, y = window("X", (m, n), 16, n), window("Y", (m, n), 16, n)
    t, top, total = Tile("t", (m, n), 32, F), Tile("top", (m,), 32, F), Tile("total", (m,), 32, F)
    return Problem(
        "softmax",
        threads,
        (
            copy("load", x, t),
            Reduction("max", t, top, 1),
            elementwise("exp", t, t, top, work=4),
            Reduction("sum", t, total, 1),
            elementwise("divide", t, t, total),
            copy("store", t, y),
        ),
    )


def attention(threads: int = 256, m: int = 128, n: int = 176, d: int = 128) -> Problem:
    q, k, v = Tile("Qs", (m, d), 16, S), Tile("Ks", (n, d), 16, S), Tile("Vs", (n, d), 16, S)
    gk, gv, go = window("K", (n, d), 16, d), window("V", (n, d), 16, d), window("O", (m, d), 16, d)
    s, p, o = Tile("S", (m, n), 32, F), Tile("P", (m, n), 16, F), Tile("acc", (m, d), 32, F)
    top, old, scale, part, total = (Tile(x, (m,), 32, F) for x in ("top", "old", "scale", "part", "total"))
    ops = (
        copy("load K", gk, k),
        copy("load V", gv, v),
        Multiply("QK", q, k, s, b_transposed=True),
        elementwise("keep max", old, top),
        Reduction("row max", s, top, 1),
        elementwise("rescale", scale, old, top, work=2),
        elementwise("exp", s, s, top, work=3),
        Reduction("row sum", s, part, 1),
        elementwise("total", total, total, scale, part),
        elementwise("cast", p, s),
        elementwise("scale acc", o, o, scale),
        Multiply("PV", p, v, o),
        elementwise("divide", o, o, total),
        copy("store", o, go),
    )
    return Problem("attention", threads, ops, {op.name: 32 for op in ops[:-2]})


def mla(threads: int = 256, m: int = 64, n: int = 64, d: int = 512, pe: int = 64) -> Problem:
    q, kv = Tile("Qs", (m, d + pe), 16, S), Tile("KVs", (n, d + pe), 16, S)
    v = Tile("Vs", (n, d), 16, S)
    s, p, o = Tile("S", (m, n), 32, F), Tile("P", (m, n), 16, F), Tile("acc", (m, d), 32, F)
    top, scale = Tile("top", (m,), 32, F), Tile("scale", (m,), 32, F)
    ops = (
        Multiply("QK", q, kv, s, b_transposed=True),
        Reduction("row max", s, top, 1),
        elementwise("rescale", scale, top),
        elementwise("exp", s, s, top, work=3),
        elementwise("cast", p, s),
        elementwise("scale acc", o, o, scale),
        Multiply("PV", p, v, o),
    )
    return Problem("mla", threads, ops, {op.name: 32 for op in ops})


def layer_norm(threads: int = 128, m: int = 4, n: int = 229) -> Problem:
    x, y = window("X", (m, n), 16, n), window("Y", (m, n), 16, n)
    gamma, g = Tile("gamma", (n,), 32, G), Tile("g", (n,), 32, F)
    t, mean, var = Tile("t", (m, n), 32, F), Tile("mean", (m,), 32, F), Tile("var", (m,), 32, F)
    sq = Tile("sq", (m, n), 32, F)
    i, j = loops(m, n)
    scale = Elementwise(
        "scale", (m, n), (read(t, i, j), read(mean, i), read(var, i), read(g, j), write(t, i, j)), 4
    )
    return Problem(
        "layer norm 229",
        threads,
        (
            copy("load", x, t),
            copy("load gamma", gamma, g),
            Reduction("mean", t, mean, 1),
            elementwise("square", sq, t, mean),
            Reduction("var", sq, var, 1),
            scale,
            copy("store", t, y),
        ),
    )


def reduce48() -> Problem:
    x, t, total = Tile("X", (48,), 32, G), Tile("t", (48,), 32, F), Tile("total", (1,), 32, F)
    x2, t2 = Tile("X2", (1, 48), 32, G), Tile("t2", (1, 48), 32, F)
    del x, t
    out = Tile("out", (1,), 32, G)
    return Problem(
        "48-thread reduce",
        48,
        (copy("load", x2, t2), Reduction("sum", t2, total, 1), copy("store", total, out)),
    )


def broadcast48(threads: int = 128) -> Problem:
    d, x, y = Tile("d", (48,), 32, F), Tile("x", (4, 48), 32, F), Tile("Y", (4, 48), 32, G)
    gd = Tile("D", (48,), 32, G)
    i, j = loops(4, 48)
    double = Elementwise("double", (4, 48), (read(d, j), write(x, i, j)))
    return Problem("broadcast by 48 columns", threads, (copy("load", gd, d), double, copy("store", x, y)))


def rotation(n: int = 128) -> Problem:
    x, f, out = Tile("X", (n,), 32, G), Tile("f", (n,), 32, F), Tile("out", (n,), 32, G)
    (i,) = loops(n)
    turn = Elementwise("rotate", (n,), (read(f, (i + 1) % n), write(out, i)))
    return Problem("fragment rotation", 128, (copy("load", x, f), turn))


def two_extents() -> Problem:
    f, out = Tile("f", (256,), 32, F), Tile("out", (256,), 32, G)
    x = Tile("X", (64,), 32, G)
    (i,), (j,) = loops(64), loops(256)
    small = Elementwise("small", (64,), (read(x, i), write(f, i)))
    return Problem("two extents", 128, (small, Elementwise("large", (256,), (read(f, j), write(out, j)))))


def sliced() -> Problem:
    """Rows 3..10 of a (32, 64) fragment are filled: the slice is not aligned with anything."""
    f, x, y = Tile("f", (32, 64), 32, F), Tile("X", (32, 64), 32, G), Tile("Y", (32, 64), 32, G)
    i, j = loops(8, 64)
    return Problem(
        "slice fill",
        128,
        (copy("load", x, f), Elementwise("fill", (8, 64), (write(f, i + 3, j),)), copy("store", f, y)),
    )


def table_lookup(k: int = 32) -> Problem:
    table, x, y = Tile("table", (k,), 32, F), Tile("x", (16, 128), 32, F), Tile("Y", (16, 128), 32, G)
    gt = Tile("T", (k,), 32, G)
    i, j = loops(16, 128)
    use = Elementwise("scale", (16, 128), (read(table, j % k), read(x, i, j), write(x, i, j)))
    return Problem("table[j % K]", 128, (copy("load", gt, table), use, copy("store", x, y)))


def transpose(threads: int = 128, n: int = 64, bits: int = 16) -> Problem:
    x, s, y = window("X", (n, n), bits, n), Tile("s", (n, n), bits, S), window("Y", (n, n), bits, n)
    i, j = loops(n, n)
    turn = Elementwise("turn", (n, n), (read(s, j, i), write(y, i, j)))
    return Problem("transposed copy", threads, (copy("load", x, s), turn))


CASES: tuple[tuple[Callable[[], Problem], TargetInfo], ...] = (
    (gemm, AMPERE),
    (lambda: gemm(256, 128, 256, 64), HOPPER),
    (lambda: gemm(256, 128, 128, 64), CDNA3),
    (lambda: gemm(128, 64, 64, 32), APPLE),
    (lambda: gemm(128, 64, 64, 32, 32), AMPERE),
    (lambda: gemm(384, 16, 104, 16), AMPERE),
    (gemm_rr, AMPERE),
    (gemm_rr, HOPPER),
    (lambda: gemm_rr(32, 8), AMPERE),
    (gemm_bias_rowmax, AMPERE),
    (lambda: gemm_bias_rowmax(256), HOPPER),
    (softmax, AMPERE),
    (lambda: attention(128, 128, 64), AMPERE),
    (attention, HOPPER),
    (mla, HOPPER),
    (layer_norm, AMPERE),
    (reduce48, AMPERE),
    (broadcast48, AMPERE),
    (rotation, AMPERE),
    (two_extents, AMPERE),
    (sliced, AMPERE),
    (table_lookup, AMPERE),
    (transpose, AMPERE),
    (lambda: transpose(128, 64, 32), HOPPER),
)
