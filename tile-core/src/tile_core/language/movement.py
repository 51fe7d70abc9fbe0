"""Tile ops that move or set data: copy, fill, clear, transpose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..errors import KernelError
from ..expr import Load, Space, cast, expr, shape_text
from ..expr.affine import same_shape
from ..program import Copy, Extent, Fill, Region
from ..program import Transpose as TransposeOp
from .builder import Builder, current
from .tiles import Tile, View, whole


def region(value: Any, what: str) -> Region:
    """A tile, a slice of it, or a head element as a region. A head has extent 1 everywhere.

    Raises:
        KernelError: anything else.
    """
    match value:
        case Tile():
            return whole(value.buffer, current().span())
        case View():
            return value.region
        case Load():
            ones: tuple[Extent, ...] = (1,) * value.buffer.ndim
            return Region(value.buffer, value.indices, ones, (True,) * value.buffer.ndim, span=value.span)
        case _:
            raise KernelError(f"{what} is a tile, a tensor or a region of one, not {value!r}")


def is_head(r: Region) -> bool:
    """Whether a region is only the element at which a tile begins."""
    return bool(r.point) and all(r.point) and r.buffer.ndim > 0


def spread(head: Region, shape: Sequence[Extent], b: Builder) -> Region:
    """A head element with the extents of the other side, aligned at the last dimension."""
    shape = list(shape)
    while len(shape) > head.buffer.ndim and shape[0] == 1:
        shape.pop(0)
    if len(shape) > head.buffer.ndim:
        raise KernelError(
            f"{head.buffer.name} has {head.buffer.ndim} dimensions, the other side has shape {shape_text(shape)}",
            b.span(),
        )
    lead = head.buffer.ndim - len(shape)
    extent = (*(1,) * lead, *shape)
    return replace(head, extent=extent, point=tuple(n < lead for n in range(head.buffer.ndim)))


def paired(src: Region, dst: Region, b: Builder, what: str) -> tuple[Region, Region]:
    """Both regions with equal shapes: a head takes the extents of the other side, extents of 1 are dropped.

    Raises:
        KernelError: the shapes differ.
    """
    if is_head(src) and not is_head(dst):
        src = spread(src, dst.shape, b)
    elif is_head(dst) and not is_head(src):
        dst = spread(dst, src.shape, b)
    if same_shape(src.shape, dst.shape):
        return src, dst
    squeezed = _squeezed(src), _squeezed(dst)
    if same_shape(squeezed[0].shape, squeezed[1].shape):
        return squeezed
    if b.launch is None and src.whole and dst.whole and len(src.shape) >= 1:
        return src, dst  # what part of the tensor is meant is inferred
    related = [(f"{r.buffer.name} is declared here", r.buffer.span) for r in (src, dst) if r.buffer.span]
    raise KernelError(
        f"{what}: the shapes differ: {src.buffer.name} {shape_text(src.shape)}, {dst.buffer.name} {shape_text(dst.shape)}",
        b.span(),
        help="name the part that is meant: its first element, as A[by * 128, k * 32], or a slice",
        related=related,
    )


def _squeezed(r: Region) -> Region:
    return replace(r, point=tuple(p or e == 1 for p, e in zip(r.point, r.extent, strict=True)))


def _hints(**values: Any) -> tuple[tuple[str, Any], ...]:
    return tuple((k, v) for k, v in values.items() if v is not None and v is not False)


def copy(
    src: Any,
    dst: Any,
    *,
    coalesced_width: int | None = None,
    disable_tma: bool = False,
    eviction_policy: str | None = None,
    prefer_instruction: str | None = None,
    annotations: dict[str, Any] | None = None,
    loop_layout: Any = None,
) -> None:
    """Copy a tile between any two memories, converting the type: ``T.copy(A[by * 128, k * 32], A_shared)``.

    A side that is a whole tile or a slice gives the extents; a side that is a single element is where the region begins,
    aligned at the last dimension. Elements of ``src`` outside its tensor read as zero, elements of ``dst`` outside its tensor
    are not written. The keywords are hints for a target.

    Raises:
        KernelError: the shapes differ, or it stands inside ``T.Parallel``.
    """
    b = current()
    b.no_parallel("T.copy")
    source, target = paired(
        region(src, "the source of a copy"), region(dst, "the target of a copy"), b, "copy"
    )
    hints = _hints(
        coalesced_width=coalesced_width,
        disable_tma=disable_tma,
        eviction_policy=eviction_policy,
        prefer_instruction=prefer_instruction,
        loop_layout=loop_layout,
        **(annotations or {}),
    )
    b.emit(Copy(source, target, hints))


def fill(dst: Any, value: Any) -> None:
    """Set every element of a tile or region to ``value``, converted to its type."""
    b = current()
    target = region(dst, "the target of a fill")
    if target.buffer.space is not Space.LOCAL:
        b.no_parallel("T.fill")
    b.emit(Fill(target, cast(expr(value), target.dtype)))


def clear(dst: Any) -> None:
    """Set every element of a tile or region to zero."""
    fill(dst, 0)


def transpose(src: Any, dst: Any) -> None:
    """``dst[..., j, i] = src[..., i, j]``.

    Raises:
        KernelError: fewer than two dimensions, or shapes that are not each other's transposes.
    """
    b = current()
    b.no_parallel("T.transpose")
    source, target = region(src, "the source of a transpose"), region(dst, "the target of a transpose")
    have, want = source.shape, target.shape
    if len(have) < 2 or not same_shape((*have[:-2], have[-1], have[-2]), want):
        raise KernelError(
            f"transpose: {target.buffer.name} {shape_text(want)} is not the transpose of {source.buffer.name} {shape_text(have)}"
        )
    b.emit(TransposeOp(source, target))
