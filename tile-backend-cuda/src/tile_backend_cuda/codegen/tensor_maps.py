"""Boxes of a lowered launch as rows of its launch specification, and its conditions as the launcher evaluates them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tile_core.expr import Buffer, Expr, Var, binary, text
from tile_core.lowering.simt.boxes import BoxMap

# bytes that a miss in L2 brings: whole rows of a tile are read. Of what is read once, the line alone (MLA decoding, 0.4 %)
PROMOTION, LINE = 256, 128


def tensor_maps(boxes: Mapping[BoxMap, Var], prefix: str, held: Mapping[Buffer, str]) -> list[dict[str, Any]]:
    """Rows of ``LaunchSpec.extra["tensor_maps"]``, in the order of the kernel's parameters. ``held``: names of workspaces."""
    return [
        _row(box, f"{prefix}{var.name}{n}", held.get(box.tensor, box.tensor.name))
        for n, (box, var) in enumerate(boxes.items())
    ]


def _row(box: BoxMap, name: str, of: str) -> dict[str, Any]:
    tensor = box.tensor
    size = tensor.dtype.bits // 8
    *outer, _ = tensor.row_major_strides()
    return {
        "name": name,
        "of": of,
        "dtype": tensor.dtype.name,
        "dims": tuple(_extent(d) for d in reversed(tensor.shape)),
        "strides": tuple(_extent(binary("*", s, size)) for s in reversed(outer)),
        "box": tuple(reversed(box.box)),
        "swizzle": box.span,
        "promotion": LINE if box.passing else PROMOTION,
    }


def _extent(x: int | Expr) -> int | str:
    if isinstance(x, int):
        return x
    value = getattr(x, "value", None)
    return value if isinstance(value, int) else text(x)


def when(conditions: Sequence[Expr], otherwise: bool) -> str:
    """That all conditions hold, or that one does not, as a number."""
    product = " * ".join(f"({text(c)})" for c in conditions)
    return f"1 - {product}" if otherwise else product
