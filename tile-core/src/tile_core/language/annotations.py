"""Wishes about a kernel that do not change its result: layouts, order of blocks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import KernelError
from .builder import current
from .scopes import LaunchState
from .tiles import Tile

ORDERS = ("row", "column")


def _launch(what: str) -> LaunchState:
    state = current().launch
    if state is None:
        raise KernelError(f"{what} stands outside of T.Kernel")
    return state


def use_swizzle(panel_size: int, order: str = "row", enable: bool = True) -> None:
    """Number the blocks in panels of ``panel_size`` rows or columns, so that neighbours share data in the last-level cache.

    Raises:
        KernelError: a size that is not positive, or an unknown order.
    """
    state = _launch("T.use_swizzle")
    if panel_size < 1 or order not in ORDERS:
        raise KernelError(
            f"panels of {panel_size} in order {order!r}", help=f"order is one of {', '.join(ORDERS)}"
        )
    state.swizzle = (panel_size, order) if enable else None


def annotate_layout(layouts: Mapping[Any, Any]) -> None:
    """Pin the layout of tiles: ``T.annotate_layout({A_shared: layout})`` with a ``tile_core.layout.Layout``.

    Raises:
        KernelError: a key that is no tile of this kernel, or a layout of another shape.
    """
    state = _launch("T.annotate_layout")
    for tile, layout in layouts.items():
        if not isinstance(tile, Tile):
            raise KernelError(f"T.annotate_layout maps tiles to layouts, {tile!r} is no tile")
        shape = getattr(layout, "shape", None)
        if shape is None:
            raise KernelError(f"the layout of {tile.name} is {layout!r}, not a tile_core.layout.Layout")
        if tuple(shape) != tuple(tile.shape):
            raise KernelError(
                f"the layout of {tile.name} is for shape {tuple(shape)}, the tile has {tuple(tile.shape)}"
            )
        state.layouts.append((tile.buffer, layout))
