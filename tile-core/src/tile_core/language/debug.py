"""Statements for looking into a running kernel, and facts about it."""

from __future__ import annotations

from typing import Any

from ..errors import KernelError
from ..expr import truth
from ..program import Assert, Assume, Print, Sync
from .builder import current
from .python import printed


def print(obj: Any = None, msg: str = "", warp_group_id: int = 0, warp_id: int = 0) -> None:
    """Print a value, or a tile with all its elements, when the kernel runs; ``msg`` stands before it.

    ``warp_group_id`` and ``warp_id`` say which warp prints on a target that has warps.
    """
    del warp_group_id, warp_id
    match obj:
        case None:
            current().emit(Print(msg, ()))
        case str():
            current().emit(Print(f"{msg} {obj}".strip(), ()))
        case _:
            current().emit(Print(msg, (printed(current(), obj),)))


def device_assert(condition: Any, msg: str = "") -> None:
    """Stop the kernel with ``msg`` if the condition is false when it runs; the caller gets a ``KernelError``."""
    if isinstance(condition, bool):
        if not condition:
            raise KernelError(
                f"device_assert is always false: {msg}" if msg else "device_assert is always false"
            )
        return
    current().emit(Assert(truth(condition), msg))


def assume(condition: Any) -> None:
    """A fact that the compiler may use and need not check; the interpreter checks it."""
    if not isinstance(condition, bool):
        current().emit(Assume(truth(condition)))


def sync_threads(barrier_id: int | None = None, arrive_count: int | None = None) -> None:
    """All threads of the block wait for each other; what they wrote to shared memory is seen by all afterwards."""
    del barrier_id, arrive_count
    b = current()
    b.no_parallel("T.sync_threads")
    b.emit(Sync())
