"""Two blocks that write one element."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Clash:
    """Two blocks that write one element: the numbers of each, and of the element. ``sizes``: of tensors, where they are open.

    ``supposed``: what elements of tensors would have to be for that. ``sure``: they do; else nothing speaks against it.
    """

    blocks: tuple[Mapping[str, int], Mapping[str, int]]
    element: tuple[int, ...]
    sizes: Mapping[str, int]
    supposed: tuple[str, ...]
    sure: bool
