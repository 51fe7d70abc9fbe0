"""Kernels on tensors of torch: through ``torch.mps``, on torch's own command queue, in order with its other work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tile_core.backend import Artifact
from tile_core.errors import BackendError, Unsupported

from . import order
from .dispatch import Dispatch, Number, Workspace

OLD = "update torch (2.7 or newer), or pass numpy arrays"


class TorchProgram:
    """One artifact as a library of torch.

    Raises:
        BackendError: this torch cannot compile or load it; the message says why.
    """

    def __init__(self, torch: Any, artifact: Artifact) -> None:
        self.torch = torch
        self.library = _library(torch.mps, artifact)

    def run(self, calls: Sequence[Dispatch]) -> None:
        """Enqueue them. Waits for nothing.

        Raises:
            Unsupported: a block has more threads than the device runs of this kernel.
        """
        held: dict[int, Any] = {}
        for call in calls:
            function = getattr(self.library, call.entry)
            most = function.max_threads_per_threadgroup
            if call.threads > most:
                raise too_many(call, most)
            given = [self._argument(a, held) for a in call.arguments]
            function(*given, threads=call.all_threads, group_size=(call.threads, 1, 1))

    def _argument(self, value: Any, held: dict[int, Any]) -> Any:
        match value:
            case Number():
                return value.bits  # torch passes an int as 8 bytes, of which the kernel reads the first
            case Workspace():
                if id(value) not in held:
                    held[id(value)] = self.torch.empty(value.bytes, dtype=self.torch.uint8, device="mps")
                return held[id(value)]
            case _:
                return value

    def check_order(self, device: str) -> None:
        """Raise ``BackendError`` if matrices are held otherwise than the atom table says."""
        library = _library(self.torch.mps, Artifact("msl", order.TEXT.encode()))
        out = self.torch.zeros(order.THREADS * order.ROW, dtype=self.torch.int32, device="mps")
        size = (order.THREADS, 1, 1)
        getattr(library, order.ENTRY)(out, threads=size, group_size=size)
        order.compare(out.cpu().tolist(), device)


def too_many(call: Dispatch, most: int) -> Unsupported:
    return Unsupported(
        f"{call.entry} runs {call.threads} threads in a block, the device can run {most} of it",
        why="each thread needs many registers",
        help="use smaller tiles, or fewer threads",
    )


def _library(mps: Any, artifact: Artifact) -> Any:
    name = {"msl": "compile_shader", "metallib": "load_metallib"}[artifact.kind]
    load = getattr(mps, name, None)
    if load is None:
        raise BackendError(f"this torch has no torch.mps.{name}", help=OLD)
    try:
        return load(artifact.data.decode() if artifact.kind == "msl" else artifact.data)
    except (RuntimeError, SyntaxError) as error:
        raise BackendError(
            f"torch.mps.{name} fails: {error}",
            why="torch chooses the version of MSL by the system: 3.1, newer ones 3.2 on macOS 15 and 4.0 on macOS 26",
            help="pass numpy arrays, for which the target's own version is used; or report the message",
        ) from error
