"""Reference kernels in the public language, and the cases (kernel, types, extents) that every backend runs.

A kernel's parameters are tensors and numbers of known type, so that arguments can be made from its program alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import tile_core.language as T


@dataclass(frozen=True)
class Case:
    """One kernel with its types and extents. ``make`` gives the kernel; ``dims`` are values of symbolic dimensions.

    ``dtypes``: every type it computes with. ``scalars``: values of scalar parameters. ``rtol`` and ``atol``: how far a
    backend's rounding may lie from the interpreter's. ``low``, ``high``: range of random integers.
    """

    name: str
    make: Callable[[], Any]
    dtypes: frozenset[str]
    dims: Mapping[str, int] = field(default_factory=dict[str, int])
    scalars: Mapping[str, float] = field(default_factory=dict[str, float])
    rtol: float = 1e-5
    atol: float = 1e-5
    low: int = -8
    high: int = 8

    @cached_property
    def program(self) -> Any:
        return self.make().program

    def __str__(self) -> str:
        return self.name


def copied(m: int, n: int, block_m: int, block_n: int, src: str, dst: str) -> Any:
    """Through shared memory and a fragment, with conversion."""

    @T.prim_func
    def main(A: T.Tensor((m, n), src), B: T.Tensor((m, n), dst)):
        with T.Kernel(T.ceildiv(n, block_n), T.ceildiv(m, block_m), threads=128) as (bx, by):
            tile = T.alloc_shared((block_m, block_n), src)
            out = T.alloc_fragment((block_m, block_n), dst)
            T.copy(A[by * block_m, bx * block_n], tile)
            T.copy(tile, out)
            T.copy(out, B[by * block_m, bx * block_n])

    return main


def elementwise(m: int, n: int, block: int, dtype: str) -> Any:
    """Arithmetic, a comparison, a branch without divergence and a scalar parameter, on global tensors."""

    @T.prim_func
    def main(
        A: T.Tensor((m, n), dtype), B: T.Tensor((m, n), dtype), C: T.Tensor((m, n), dtype), alpha: T.float32
    ):
        with T.Kernel(T.ceildiv(n, block), m, threads=64) as (bx, by):
            for i in T.Parallel(block):
                j = bx * block + i
                if j < n:
                    C[by, j] = T.if_then_else(A[by, j] > B[by, j], A[by, j] * alpha, A[by, j] + B[by, j])

    return main


def math(n: int, block: int, dtype: str) -> Any:
    """Functions that need an expansion on some target."""

    @T.prim_func
    def main(A: T.Tensor((n,), dtype), B: T.Tensor((6, n), dtype)):
        with T.Kernel(T.ceildiv(n, block), threads=64) as bx:
            x = T.alloc_fragment((block,), dtype)
            T.copy(A[bx * block], x)
            for i in T.Parallel(block):
                j = bx * block + i
                if j < n:
                    B[0, j] = T.exp(x[i])
                    B[1, j] = T.tanh(x[i])
                    B[2, j] = T.sqrt(T.abs(x[i]))
                    B[3, j] = T.erf(x[i])
                    B[4, j] = T.floor(x[i] * 3)
                    B[5, j] = T.log(T.abs(x[i]) + 1)

    return main


def integers(n: int, block: int) -> Any:
    """Division and remainder of negative numbers, shifts and bits."""

    @T.prim_func
    def main(A: T.Tensor((n,), "int32"), B: T.Tensor((4, n), "int32")):
        with T.Kernel(T.ceildiv(n, block), threads=64) as bx:
            for i in T.Parallel(block):
                j = bx * block + i
                if j < n:
                    B[0, j] = A[j] // 3
                    B[1, j] = A[j] % 3
                    B[2, j] = (A[j] << 2) ^ (A[j] >> 1)
                    B[3, j] = T.truncdiv(A[j], 3)

    return main


def gemm(
    m: int,
    n: int,
    k: int,
    block: tuple[int, int, int],
    types: tuple[str, str, str],
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
    stages: int = 2,
    threads: int = 128,
    precision: str = "",
) -> Any:
    """``C = op(A) op(B)`` with a pipelined loop along k. ``types`` of the operands, the sum and the result."""
    bm, bn, bk = block
    hints = {"precision": precision} if precision else {}
    operand, total, result = types
    a_shape, a_tile = ((k, m), (bk, bm)) if transpose_a else ((m, k), (bm, bk))
    b_shape, b_tile = ((n, k), (bn, bk)) if transpose_b else ((k, n), (bk, bn))

    @T.prim_func
    def main(A: T.Tensor(a_shape, operand), B: T.Tensor(b_shape, operand), C: T.Tensor((m, n), result)):
        with T.Kernel(T.ceildiv(n, bn), T.ceildiv(m, bm), threads=threads) as (bx, by):
            a = T.alloc_shared(a_tile, operand)
            b = T.alloc_shared(b_tile, operand)
            c = T.alloc_fragment((bm, bn), total)
            T.clear(c)
            for ko in T.Pipelined(T.ceildiv(k, bk), num_stages=stages):
                if transpose_a:
                    T.copy(A[ko * bk, by * bm], a)
                else:
                    T.copy(A[by * bm, ko * bk], a)
                if transpose_b:
                    T.copy(B[bx * bn, ko * bk], b)
                else:
                    T.copy(B[ko * bk, bx * bn], b)
                T.gemm(a, b, c, transpose_A=transpose_a, transpose_B=transpose_b, annotations=hints)
            T.copy(c, C[by * bm, bx * bn])

    return main


def reduced(m: int, n: int, block: int, kind: str, dtype: str) -> Any:
    """Each row to one number; ``kind`` is sum, max or absmax."""
    reduce = {"sum": T.reduce_sum, "max": T.reduce_max, "absmax": T.reduce_absmax}[kind]

    @T.prim_func
    def main(A: T.Tensor((m, n), dtype), B: T.Tensor((m,), "float32")):
        with T.Kernel(T.ceildiv(m, block), threads=128) as bx:
            tile = T.alloc_fragment((block, n), "float32")
            out = T.alloc_fragment((block,), "float32")
            T.copy(A[bx * block, 0], tile)
            reduce(tile, out, dim=1)
            T.copy(out, B[bx * block])

    return main


def softmax(m: int, n: int, block: int, dtype: str) -> Any:
    """Over rows that fit into a fragment."""

    @T.prim_func
    def main(A: T.Tensor((m, n), dtype), B: T.Tensor((m, n), dtype)):
        with T.Kernel(T.ceildiv(m, block), threads=128) as bx:
            x = T.alloc_fragment((block, n), "float32")
            top = T.alloc_fragment((block,), "float32")
            total = T.alloc_fragment((block,), "float32")
            T.copy(A[bx * block, 0], x)
            T.reduce_max(x, top, dim=1)
            for i, j in T.Parallel(block, n):
                x[i, j] = T.exp(x[i, j] - top[i])
            T.reduce_sum(x, total, dim=1)
            for i, j in T.Parallel(block, n):
                x[i, j] = x[i, j] / total[i]
            T.copy(x, B[bx * block, 0])

    return main


def attention(seq: int, d: int, block: int, dtype: str) -> Any:
    """One head, with the running maximum and sum of the flash algorithm; a ragged last block is masked."""

    @T.prim_func
    def main(
        Q: T.Tensor((seq, d), dtype),
        K: T.Tensor((seq, d), dtype),
        V: T.Tensor((seq, d), dtype),
        O: T.Tensor((seq, d), dtype),
    ):
        with T.Kernel(T.ceildiv(seq, block), threads=128) as bx:
            q = T.alloc_shared((block, d), dtype)
            k = T.alloc_shared((block, d), dtype)
            v = T.alloc_shared((block, d), dtype)
            s = T.alloc_fragment((block, block), "float32")
            p = T.alloc_fragment((block, block), dtype)
            o = T.alloc_fragment((block, d), "float32")
            top = T.alloc_fragment((block,), "float32")
            old = T.alloc_fragment((block,), "float32")
            part = T.alloc_fragment((block,), "float32")
            total = T.alloc_fragment((block,), "float32")
            T.copy(Q[bx * block, 0], q)
            T.clear(o)
            T.clear(total)
            T.fill(top, -T.infinity("float32"))
            for step in T.Pipelined(T.ceildiv(seq, block), num_stages=2):
                T.copy(K[step * block, 0], k)
                T.clear(s)
                T.gemm(q, k, s, transpose_B=True)
                for i, j in T.Parallel(block, block):
                    s[i, j] = T.if_then_else(step * block + j < seq, s[i, j] * 0.25, -T.infinity("float32"))
                T.copy(top, old)
                T.reduce_max(s, top, dim=1, clear=False)
                for i, j in T.Parallel(block, block):
                    s[i, j] = T.exp(s[i, j] - top[i])
                T.reduce_sum(s, part, dim=1)
                for i in T.Parallel(block):
                    total[i] = total[i] * T.exp(old[i] - top[i]) + part[i]
                for i, j in T.Parallel(block, d):
                    o[i, j] = o[i, j] * T.exp(old[i] - top[i])
                T.copy(s, p)
                T.copy(V[step * block, 0], v)
                T.gemm(p, v, o)
            for i, j in T.Parallel(block, d):
                o[i, j] = o[i, j] / total[i]
            T.copy(o, O[bx * block, 0])

    return main


def transposed(m: int, n: int, block: int, dtype: str) -> Any:
    @T.prim_func
    def main(A: T.Tensor((m, n), dtype), B: T.Tensor((n, m), dtype)):
        with T.Kernel(T.ceildiv(n, block), T.ceildiv(m, block), threads=128) as (bx, by):
            tile = T.alloc_shared((block, block), dtype)
            turned = T.alloc_shared((block, block), dtype)
            T.copy(A[by * block, bx * block], tile)
            T.transpose(tile, turned)
            T.copy(turned, B[bx * block, by * block])

    return main


def scanned(m: int, n: int, dtype: str) -> Any:
    """Prefix sums of rows."""

    @T.prim_func
    def main(A: T.Tensor((m, n), dtype), B: T.Tensor((m, n), dtype)):
        with T.Kernel(m, threads=128) as bx:
            tile = T.alloc_shared((1, n), dtype)
            T.copy(A[bx, 0], tile)
            T.cumsum(tile, dim=1)
            T.copy(tile, B[bx, 0])

    return main


def histogram(n: int, bins: int, block: int) -> Any:
    """Atomic additions to few places by many threads of many blocks."""

    @T.prim_func
    def main(A: T.Tensor((n,), "int32"), H: T.Tensor((bins,), "int32")):
        with T.Kernel(T.ceildiv(n, block), threads=64) as bx:
            for i in T.Parallel(block):
                j = bx * block + i
                if j < n:
                    T.atomic_add(H[A[j] % bins], 1)

    return main


def named(n: int) -> Any:
    """Names that are good Python and no names, or something else, in the languages that kernels are printed in."""

    @T.prim_func
    def größe(
        xor: T.Tensor((n,), "float32"), float: T.Tensor((n,), "float32"), kernel: T.Tensor((n,), "float32")
    ):
        with T.Kernel(1, threads=64) as block:
            thread = T.alloc_fragment((n,), "float32")
            T.copy(xor, thread)
            for sqrt in T.Parallel(n):
                nullptr = float[sqrt] * 2
                thread[sqrt] = thread[sqrt] + nullptr
            T.copy(thread, kernel)

    return größe


def dynamic(block: int, dtype: str) -> Any:
    """Dimensions that are known at the launch only."""
    m, n = T.dynamic("m, n")

    @T.prim_func
    def main(A: T.Tensor((m, n), dtype), B: T.Tensor((m, n), dtype)):
        with T.Kernel(T.ceildiv(n, block), T.ceildiv(m, block), threads=128) as (bx, by):
            tile = T.alloc_fragment((block, block), dtype)
            T.copy(A[by * block, bx * block], tile)
            for i, j in T.Parallel(block, block):
                tile[i, j] = tile[i, j] * 2
            T.copy(tile, B[by * block, bx * block])

    return main


LOOSE = {
    "float32": (1e-5, 1e-5),
    "tfloat32": (2e-3, 2e-3),
    "float16": (2e-2, 1e-2),
    "bfloat16": (5e-2, 3e-2),
    "float8_e4m3fn": (2e-2, 2e-2),
    "int8": (0, 0),
    "int32": (0, 0),
}
HALVES = ("float16", "bfloat16")


def later(m: int, n: int, block: int) -> Any:
    """Sums of rows' ends: the loop begins where a quotient says, and no pipeline hides it."""

    @T.prim_func
    def main(A: T.Tensor((m, n), "int32"), B: T.Tensor((m, block), "int32")):
        with T.Kernel(m, threads=32) as bx:
            total = T.alloc_fragment((block,), "int32")
            T.clear(total)
            for k in T.serial((bx + 1) // 2, T.ceildiv(n, block)):
                for i in T.Parallel(block):
                    if k * block + i < n:
                        total[i] += A[bx, k * block + i]
            T.copy(total, B[bx, :])

    return main


FLOATS = (*HALVES, "float32")


def _case(
    name: str, make: Callable[..., Any], *values: Any, types: tuple[str, ...], sums: int = 1, **more: Any
) -> Case:
    """``sums``: how many rounded terms a result adds up, which widens what is allowed."""
    rtol, atol = max((LOOSE[t] for t in types), default=(0, 0))
    keywords = more.pop("keywords", {})
    return Case(
        name,
        lambda: make(*values, **keywords),
        frozenset(types),
        rtol=rtol,
        atol=atol * max(1.0, sums**0.5),
        **more,
    )


def _copies() -> list[Case]:
    """Every pair of floating types, and extents that no block divides."""
    even = [
        _case(f"copy-{a}-{b}-even", copied, 64, 64, 32, 32, a, b, types=(a, b))
        for a in FLOATS
        for b in FLOATS
    ]
    return even + [
        _case(f"copy-{t}-ragged", copied, 45, 33, 16, 16, t, t, types=(t,)) for t in (*FLOATS, "int8")
    ]


def _elementwise() -> list[Case]:
    more = {"scalars": {"alpha": 1.5}}
    out = [
        _case(f"elementwise-{t}-{n}", elementwise, 3, n, 64, t, types=(t, "float32"), **more)
        for t in FLOATS
        for n in (64, 100, 1)
    ]
    out.append(_case("math-float32", math, 100, 64, "float32", types=("float32",), sums=4))
    out.append(_case("integers", integers, 100, 64, types=("int32",), low=-100, high=100))
    return out


def _gemms() -> list[Case]:
    even, ragged = (64, 64, 64, (32, 32, 32)), (65, 47, 33, (32, 32, 16))
    out = [
        _case("gemm-int8", gemm, *even, ("int8", "int32", "int32"), types=("int8", "int32")),
        _gemm("gemm-float16-one-k-step", (32, 32, 16, (32, 32, 16)), "float16", "float32", stages=4),
    ]
    for t in FLOATS:
        exact = {"precision": "ieee"} if t == "float32" else {}
        out.append(_gemm(f"gemm-{t}-even", even, t, "float32", **exact))
        out.append(_gemm(f"gemm-{t}-ragged", ragged, t, t, **exact))
    # a target may round float32 to a type with fewer bits of mantissa before it multiplies
    for name, extents in (("even", even), ("ragged", ragged)):
        out.append(_rounded(f"gemm-float32-rounded-{name}", extents))
    for a in (False, True):
        for b in (False, True):
            name = f"gemm-float16-{'nt'[a]}{'nt'[b]}"
            extents = (64, 64, 48, (32, 32, 16))
            out.append(_gemm(name, extents, "float16", "float16", transpose_a=a, transpose_b=b))
    return out


def _large_tiles() -> list[Case]:
    """Tiles of 64 and 128 rows, which is what some matrix units need: all rows there, and ends that no tile meets."""
    ragged, wide = (72, 64, 72, (64, 64, 64)), (128, 64, 128, (128, 64, 64))
    return [
        _gemm("gemm-float16-nn-64-rows", (64, 64, 128, (64, 64, 64)), "float16", "float32"),
        _gemm("gemm-float16-nt-ragged-64-rows", ragged, "float16", "float16", transpose_b=True),
        _gemm("gemm-bfloat16-nt-128-rows", wide, "bfloat16", "bfloat16", transpose_b=True, threads=256),
        _gemm("gemm-bfloat16-nn-128-rows", wide, "bfloat16", "float32", threads=256),
        _gemm("gemm-fp8-nt-128-rows", wide, "float8_e4m3fn", "float32", transpose_b=True, threads=256),
        _case(
            "attention-float16-64-rows",
            attention,
            *(100, 32, 64, "float16"),
            types=("float16", "float32"),
            sums=100,
        ),
    ]


def _gemm(name: str, extents: tuple[Any, ...], operand: str, result: str, **keywords: Any) -> Case:
    types = (operand, "float32", result)
    return _case(name, gemm, *extents, types, types=(operand, "float32"), sums=extents[2], keywords=keywords)


def _rounded(name: str, extents: tuple[Any, ...]) -> Case:
    rtol, atol = LOOSE["tfloat32"]
    types = ("float32", "float32", "float32")
    atol *= extents[2] ** 0.5
    return Case(name, lambda: gemm(*extents, types), frozenset(types), rtol=rtol, atol=atol)


def _rows() -> list[Case]:
    """Reductions, scans and what is built of them."""
    out = [
        _case(f"{kind}-rows-float32", reduced, 37, 64, 16, kind, "float32", types=("float32",), sums=64)
        for kind in ("sum", "max", "absmax")
    ]
    out.append(
        _case(
            "sum-rows-float16", reduced, 32, 48, 16, "sum", "float16", types=("float16", "float32"), sums=48
        )
    )
    out += [_case(f"softmax-{t}", softmax, 20, 64, 16, t, types=(t, "float32")) for t in FLOATS]
    for t in HALVES:
        for seq in (64, 75):
            out.append(
                _case(f"attention-{t}-{seq}", attention, seq, 32, 32, t, types=(t, "float32"), sums=seq)
            )
    out.append(_case("prefix-sum", scanned, 3, 128, "float32", types=("float32",), sums=128))
    return out


def _others() -> list[Case]:
    out = [_case(f"transpose-{n}", transposed, n, 33, 16, "float32", types=("float32",)) for n in (32, 50)]
    out.append(_case("histogram", histogram, 1000, 7, 128, types=("int32",), low=0, high=100))
    out.append(_case("sums-of-ends", later, 7, 100, 16, types=("int32",), low=-100, high=100))
    out.append(_case("names", named, 50, types=("float32",)))
    for m, n in ((32, 32), (33, 17), (0, 5)):
        dims = {"m": m, "n": n}
        out.append(_case(f"dynamic-{m}x{n}", dynamic, 16, "float32", types=("float32",), dims=dims))
    return out


CASES = (*_copies(), *_elementwise(), *_gemms(), *_large_tiles(), *_rows(), *_others())
BY_NAME = {case.name: case for case in CASES}
# what is emitted and compiled for every architecture: one of each kind
SMALL = tuple(
    BY_NAME[name]
    for name in (
        "copy-float32-ragged",
        "elementwise-float32-100",
        "gemm-float16-even",
        "gemm-float16-ragged",
        "softmax-float32",
        "attention-float16-75",
    )
)
