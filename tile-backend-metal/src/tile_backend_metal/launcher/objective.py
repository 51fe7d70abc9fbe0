"""Kernels on arrays of the host: through Metal's own interface by PyObjC. Arrays go to buffers and come back in the call."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from tile_core.backend import Artifact
from tile_core.errors import BackendError

from . import order
from .dispatch import Dispatch, Number, Workspace
from .memory import Held
from .torch_mps import too_many

PACKAGE = "pip install pyobjc-framework-Metal"
SHARED = 0  # MTLResourceStorageModeShared: the host and the GPU see the same bytes
COMPLETED = 4  # MTLCommandBufferStatusCompleted
SAFE, PRECISE = 0, 1  # MTLMathModeSafe, MTLMathFloatingPointFunctionsPrecise

# Where a timer wants the seconds that the GPU took for each call of this context.
SECONDS: ContextVar[list[float] | None] = ContextVar("SECONDS", default=None)


def interface() -> Any:
    """The module ``Metal``. Raises ``BackendError`` where it is not installed."""
    try:
        return importlib.import_module("Metal")
    except ImportError as error:
        raise BackendError(
            f"Metal cannot be reached from Python: {error}",
            why="arrays of the host are passed through PyObjC",
            help=f"{PACKAGE}; or pass torch tensors on the device 'mps'",
        ) from error


class ObjectiveProgram:
    """One artifact as a library of Metal's. ``language``: the version of MSL.

    Raises:
        BackendError: PyObjC is missing, or Metal refuses the artifact; the message says why.
    """

    def __init__(self, artifact: Artifact, language: str) -> None:
        self.metal = interface()
        self.language = language
        self.device = self.metal.MTLCreateSystemDefaultDevice()
        self.queue = self.device.newCommandQueue()
        self.library = self._library(artifact)
        self.pipelines: dict[str, Any] = {}

    def _library(self, artifact: Artifact) -> Any:
        if artifact.kind == "metallib":
            import tempfile

            with tempfile.NamedTemporaryFile(suffix=".metallib") as file:
                file.write(artifact.data)
                file.flush()
                foundation = importlib.import_module("Foundation")
                url = foundation.NSURL.fileURLWithPath_(file.name)
                return _made("the metallib", *self.device.newLibraryWithURL_error_(url, None))
        options = self.metal.MTLCompileOptions.alloc().init()
        major, minor = map(int, self.language.split("."))
        options.setLanguageVersion_(major << 16 | minor)  # MTLLanguageVersion
        # MTLLibrary.h: fastMathEnabled until macOS 15, which has two options in its place
        if options.respondsToSelector_("setMathMode:"):
            options.setMathMode_(SAFE)
            options.setMathFloatingPointFunctions_(PRECISE)
        else:
            options.setFastMathEnabled_(False)
        text = artifact.data.decode()
        return _made("the source", *self.device.newLibraryWithSource_options_error_(text, options, None))

    def run(self, calls: Sequence[Dispatch]) -> None:
        """Run them one after the other and wait, then give the arrays their new bytes.

        Raises:
            BackendError: the device failed; the message is Metal's.
            Unsupported: a block has more threads than the device runs of this kernel.
        """
        given = [a for call in calls for a in call.arguments]
        held = Held([a for a in given if not isinstance(a, (Number, Workspace))], self._filled)
        workspaces = {w: self._empty(w) for w in given if isinstance(w, Workspace)}
        pipelines = [
            self._pipeline(call) for call in calls
        ]  # an encoder that an error leaves open ends the process
        commands = self.queue.commandBuffer()
        encoder = commands.computeCommandEncoder()  # serial: a dispatch sees what those before it wrote
        for call, pipeline in zip(calls, pipelines, strict=True):
            encoder.setComputePipelineState_(pipeline)
            self._encode(encoder, call, held, workspaces)
        encoder.endEncoding()
        commands.commit()
        commands.waitUntilCompleted()
        if commands.status() != COMPLETED:
            raise BackendError(f"the kernel failed on the device: {commands.error()}")
        held.give_back()
        measured = SECONDS.get()
        if measured is not None:
            measured.append(commands.GPUEndTime() - commands.GPUStartTime())

    def _encode(self, encoder: Any, call: Dispatch, held: Held, workspaces: Mapping[Workspace, Any]) -> None:
        for n, value in enumerate(call.arguments):
            match value:
                case Number():
                    encoder.setBytes_length_atIndex_(value.bytes, len(value.bytes), n)
                case Workspace():
                    encoder.setBuffer_offset_atIndex_(workspaces[value], 0, n)
                case _:
                    place = held.place(value)
                    encoder.setBuffer_offset_atIndex_(place.buffer, place.offset, n)
        size = self.metal.MTLSizeMake
        encoder.dispatchThreadgroups_threadsPerThreadgroup_(size(*call.grid), size(call.threads, 1, 1))

    def _pipeline(self, call: Dispatch) -> Any:
        found = self.pipelines.get(call.entry)
        if found is None:
            function = self.library.newFunctionWithName_(call.entry)
            made = self.device.newComputePipelineStateWithFunction_error_(function, None)
            found = self.pipelines[call.entry] = _made(call.entry, *made)
        most = found.maxTotalThreadsPerThreadgroup()
        if call.threads > most:
            raise too_many(call, most)
        return found

    def _filled(self, data: bytes) -> Any:
        return self.device.newBufferWithBytes_length_options_(data, len(data), SHARED)

    def _empty(self, workspace: Workspace) -> Any:
        return self.device.newBufferWithLength_options_(workspace.bytes, SHARED)

    def check_order(self, device: str) -> None:
        """Raise ``BackendError`` if matrices are held otherwise than the atom table says."""
        import numpy as np

        out = np.zeros(order.THREADS * order.ROW, np.int32)
        other = ObjectiveProgram(Artifact("msl", order.TEXT.encode()), self.language)
        other.run([Dispatch(order.ENTRY, (1, 1, 1), order.THREADS, (out,))])
        order.compare(out.tolist(), device)


def _made(what: str, made: Any, error: Any) -> Any:
    if made is None:
        raise BackendError(
            f"Metal refuses {what}: {error.localizedDescription() if error is not None else 'no reason given'}",
            help="please report it with the kernel's source",
        )
    return made
