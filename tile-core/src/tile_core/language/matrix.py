"""Matrix multiplication."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import Enum
from typing import Any

from ..errors import KernelError
from ..expr import Space, shape_text
from ..expr.affine import same
from ..program import Extent, Gemm, Region
from .builder import current
from .movement import region


class GemmWarpPolicy(str, Enum):
    """How the warps of a block split the result: both directions, rows only, or columns only."""

    Square = "square"
    FullRow = "full_row"
    FullCol = "full_col"


def _matrix(value: Any, what: str) -> Region:
    """A 2-D region; leading extents of 1 are dropped."""
    r = region(value, what)
    shape = list(r.shape)
    drop = 0
    while len(shape) - drop > 2 and shape[drop] == 1:
        drop += 1
    if len(shape) - drop != 2:
        raise KernelError(f"{what} is a matrix, {r.buffer.name} has shape {shape_text(shape)}", r.span)
    if drop:
        kept = [n for n, p in enumerate(r.point) if not p][drop:]
        r = replace(r, point=tuple(n not in kept for n in range(r.buffer.ndim)))
    return r


def gemm(
    A: Any,
    B: Any,
    C: Any,
    transpose_A: bool = False,
    transpose_B: bool = False,
    policy: GemmWarpPolicy | str = GemmWarpPolicy.Square,
    clear_accum: bool = False,
    *,
    k_pack: int | None = None,
    wg_wait: int | None = None,
    annotations: dict[str, Any] | None = None,
) -> None:
    """``C += op(A) @ op(B)``: op(A) is (M, K), op(B) is (K, N), C is (M, N).

    A and B are shared tiles or fragments, C a fragment or a shared tile. Products are summed in the type of C. With
    ``clear_accum`` the old value of C is dropped. ``k_pack``, ``wg_wait`` and ``annotations`` are hints.

    Raises:
        KernelError: shapes that do not fit (both are shown), an operand in global memory, or types without a product.
    """
    b = current()
    b.no_parallel("T.gemm")
    a_, b_, c_ = _matrix(A, "A of a gemm"), _matrix(B, "B of a gemm"), _matrix(C, "C of a gemm")
    for name, r in (("A", a_), ("B", b_), ("C", c_)):
        if r.buffer.space not in (Space.SHARED, Space.FRAGMENT):
            raise KernelError(
                f"{name} of the gemm, {r.buffer.name}, lives in {r.buffer.space} memory",
                r.span or b.span(),
                why="a gemm works on shared tiles and fragments",
                help=f"copy it first: T.copy({r.buffer.name}[...], tile)",
            )
    _fit(a_, b_, c_, transpose_A, transpose_B)
    _types(a_, b_, c_)
    hints = tuple(
        (k, v)
        for k, v in {"k_pack": k_pack, "wg_wait": wg_wait, **(annotations or {})}.items()
        if v is not None
    )
    b.emit(Gemm(a_, b_, c_, transpose_A, transpose_B, GemmWarpPolicy(policy).value, clear_accum, hints))


def _oriented(r: Region, transposed: bool) -> Sequence[Extent]:
    return r.shape[::-1] if transposed else r.shape


def _fit(a: Region, b: Region, c: Region, transpose_a: bool, transpose_b: bool) -> None:
    (m, k), (k2, n), (m2, n2) = _oriented(a, transpose_a), _oriented(b, transpose_b), c.shape
    wrong = [what for what, x, y in (("K", k, k2), ("M", m, m2), ("N", n, n2)) if not same(x, y)]
    if not wrong:
        return
    shapes = ", ".join(
        f"{name} = {r.buffer.name} {shape_text(r.shape)}{' transposed' if t else ''}"
        for name, r, t in (("A", a, transpose_a), ("B", b, transpose_b), ("C", c, False))
    )
    declared = [(f"{r.buffer.name} is declared here", r.buffer.span) for r in (a, b, c) if r.buffer.span]
    raise KernelError(
        f"gemm: {' and '.join(wrong)} differ{'s' if len(wrong) == 1 else ''}: {shapes}",
        why="op(A) is (M, K), op(B) is (K, N), C is (M, N)",
        help="check transpose_A and transpose_B, and the shapes of the tiles",
        related=declared,
    )


def _types(a: Region, b: Region, c: Region) -> None:
    if a.dtype.is_float != b.dtype.is_float or a.dtype.is_float != c.dtype.is_float:
        raise KernelError(
            f"gemm: no product of {a.dtype} and {b.dtype} into {c.dtype}", help="cast one of the tiles"
        )
    if c.dtype.bits < max(a.dtype.bits, b.dtype.bits) or (c.dtype.is_float and c.dtype.bits < 16):
        raise KernelError(
            f"gemm: the accumulator {c.buffer.name} ({c.dtype}) is narrower than its operands ({a.dtype}, {b.dtype})",
            help="accumulate in float32 (int32 for integers) and cast the result",
        )
