"""Kernels on arrays of the host: through Metal's own interface by PyObjC. Arrays go to buffers and come back in the call."""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tile_core.backend import Artifact
from tile_core.dtypes import dtype
from tile_core.errors import ArgumentError, BackendError
from tile_core.runtime.arguments import is_tensor, view

from . import order
from .dispatch import Dispatch, Number, Workspace
from .torch_mps import too_many

PACKAGE = "pip install pyobjc-framework-Metal"
SHARED = 0  # MTLResourceStorageModeShared: the host and the GPU see the same bytes
COMPLETED = 4  # MTLCommandBufferStatusCompleted
SAFE, PRECISE = 0, 1  # MTLMathModeSafe, MTLMathFloatingPointFunctionsPrecise


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
        buffers: dict[int, _Held] = {}
        commands = self.queue.commandBuffer()
        encoder = commands.computeCommandEncoder()  # serial: a dispatch sees what those before it wrote
        for call in calls:
            self._encode(encoder, call, buffers)
        encoder.endEncoding()
        commands.commit()
        commands.waitUntilCompleted()
        if commands.status() != COMPLETED:
            raise BackendError(f"the kernel failed on the device: {commands.error()}")
        for held in buffers.values():
            held.give_back()

    def _encode(self, encoder: Any, call: Dispatch, buffers: dict[int, _Held]) -> None:
        pipeline = self._pipeline(call)
        encoder.setComputePipelineState_(pipeline)
        for n, value in enumerate(call.arguments):
            if isinstance(value, Number):
                encoder.setBytes_length_atIndex_(value.bytes, len(value.bytes), n)
                continue
            if id(value) not in buffers:
                buffers[id(value)] = self._held(value)
            encoder.setBuffer_offset_atIndex_(buffers[id(value)].buffer, 0, n)
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

    def _held(self, value: Any) -> _Held:
        if isinstance(value, Workspace):
            return _Held(self.device.newBufferWithLength_options_(value.bytes, SHARED), 0, 0)
        pointer, size = _memory(value)
        data = ctypes.string_at(pointer, size) or b"\0"
        return _Held(self.device.newBufferWithBytes_length_options_(data, len(data), SHARED), pointer, size)

    def check_order(self, device: str) -> None:
        """Raise ``BackendError`` if matrices are held otherwise than the atom table says."""
        import numpy as np

        out = np.zeros(order.THREADS * order.ROW, np.int32)
        other = ObjectiveProgram(Artifact("msl", order.TEXT.encode()), self.language)
        other.run([Dispatch(order.ENTRY, (1, 1, 1), order.THREADS, (out,))])
        order.compare(out.tolist(), device)


@dataclass(frozen=True, slots=True)
class _Held:
    """A buffer, and the host's memory that it stands for."""

    buffer: Any
    pointer: int
    size: int

    def give_back(self) -> None:
        if self.size:
            ctypes.memmove(self.pointer, bytes(self.buffer.contents().as_buffer(self.size)), self.size)


def _memory(value: Any) -> tuple[int, int]:
    """Address and bytes of an array of the host, from its first to its last element."""
    if not is_tensor(value):
        raise ArgumentError(f"{type(value).__name__} is no tensor")
    found = view(value)
    if not found.on_host:
        raise ArgumentError(
            f"a tensor on {found.device} cannot be passed to Metal",
            help="pass torch tensors on 'mps', or numpy arrays",
        )
    if 0 in found.shape:
        return found.pointer, 0
    steps = found.strides
    if steps is None:
        count = 1
        for n in found.shape:
            count *= n
    else:
        count = 1 + sum((n - 1) * step for n, step in zip(found.shape, steps, strict=True))
    return found.pointer, count * dtype(found.dtype).bytes


def _made(what: str, made: Any, error: Any) -> Any:
    if made is None:
        raise BackendError(
            f"Metal refuses {what}: {error.localizedDescription() if error is not None else 'no reason given'}",
            help="please report it with the kernel's source",
        )
    return made
