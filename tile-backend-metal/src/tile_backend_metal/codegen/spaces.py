"""MSL's words for the memories of tile programs."""

from __future__ import annotations

from tile_core.expr import Space

SPACES = {Space.GLOBAL: "device", Space.SHARED: "threadgroup"}
PRIVATE = "thread"


def pointer(space: Space, type: str) -> str:
    """The type of a pointer into a memory space. MSL 4: each pointer names its address space."""
    return f"{SPACES[space]} {type}*"
