"""PyObjC's ``Metal`` without a Mac: its objects remember each message, and a chosen function stands for the GPU.

The signatures are those of the Metal framework's headers (MTLDevice.h, MTLLibrary.h, MTLComputeCommandEncoder.h).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from tile_backend_metal.launcher import order


class Buffer:
    def __init__(self, data: bytes) -> None:
        self.data = bytearray(data)

    def contents(self) -> Buffer:
        return self

    def as_buffer(self, size: int) -> memoryview:
        return memoryview(self.data)[:size]


@dataclass
class Part:
    """A buffer from an offset on."""

    buffer: Buffer
    offset: int

    @property
    def data(self) -> memoryview:
        return memoryview(self.buffer.data)[self.offset :]


@dataclass
class Launch:
    """One dispatch: buffers or bytes by index."""

    entry: str
    arguments: dict[int, Any]
    grid: tuple[int, int, int]
    threads: tuple[int, int, int]


class FakeMetal(ModuleType):
    """``gpu`` does what a launch asks for; ``most``: threads that a pipeline takes. ``said``: messages in order."""

    def __init__(self) -> None:
        super().__init__("Metal")
        self.said: list[str] = []
        self.launches: list[Launch] = []
        self.options: dict[str, Any] = {}
        self.sources: list[str] = []
        self.gpu: Callable[[Launch], None] = lambda launch: None
        self.order = order.expected()
        self.most = 1024
        self.refuse = ""
        self.status = 4
        self.new = True  # macOS 15 and later
        self.clock = 0.0  # seconds

    def MTLCreateSystemDefaultDevice(self) -> Device:
        return Device(self)

    def MTLSizeMake(self, x: int, y: int, z: int) -> tuple[int, int, int]:
        return x, y, z

    @property
    def MTLCompileOptions(self) -> Options:
        return Options(self)


@dataclass
class Options:
    metal: FakeMetal

    def alloc(self) -> Options:
        return self

    def init(self) -> Options:
        return self

    def respondsToSelector_(self, name: str) -> bool:
        return self.metal.new and name == "setMathMode:"

    def setLanguageVersion_(self, value: int) -> None:
        self.metal.options["language"] = value

    def setMathMode_(self, value: int) -> None:
        self.metal.options["mode"] = value

    def setMathFloatingPointFunctions_(self, value: int) -> None:
        self.metal.options["functions"] = value

    def setFastMathEnabled_(self, value: bool) -> None:
        self.metal.options["fast"] = value


@dataclass
class Failure:
    text: str

    def localizedDescription(self) -> str:
        return self.text


@dataclass
class Device:
    metal: FakeMetal

    def newCommandQueue(self) -> Queue:
        return Queue(self.metal)

    def newLibraryWithSource_options_error_(self, text: str, options: Any, error: None) -> tuple[Any, Any]:
        assert isinstance(options, Options)
        if self.metal.refuse:
            return None, Failure(self.metal.refuse)
        self.metal.sources.append(text)
        return Library(self.metal), None

    def newComputePipelineStateWithFunction_error_(self, function: str, error: None) -> tuple[Any, Any]:
        return Pipeline(self.metal, function), None

    def newBufferWithBytes_length_options_(self, data: bytes, length: int, options: int) -> Buffer:
        assert len(data) == length > 0 and options == 0
        return Buffer(data)

    def newBufferWithLength_options_(self, length: int, options: int) -> Buffer:
        assert length > 0 and options == 0
        return Buffer(bytes(length))


@dataclass
class Library:
    metal: FakeMetal

    def newFunctionWithName_(self, name: str) -> str:
        return name


@dataclass
class Pipeline:
    metal: FakeMetal
    entry: str

    def maxTotalThreadsPerThreadgroup(self) -> int:
        return self.metal.most


@dataclass
class Queue:
    metal: FakeMetal

    def commandBuffer(self) -> Commands:
        return Commands(self.metal)


@dataclass
class Commands:
    metal: FakeMetal
    queued: list[Launch] = field(default_factory=list)
    begin: float = 0.0

    def computeCommandEncoder(self) -> Encoder:
        self.metal.said.append("encode")
        return Encoder(self)

    def commit(self) -> None:
        self.metal.said.append("commit")

    def GPUStartTime(self) -> float:
        return self.begin

    def GPUEndTime(self) -> float:
        return self.metal.clock

    def waitUntilCompleted(self) -> None:
        self.metal.said.append("wait")
        self.begin = self.metal.clock
        self.metal.clock += 0.00025 * len(self.queued)
        for launch in self.queued:
            self.metal.launches.append(launch)
            if launch.entry == order.ENTRY:
                out = launch.arguments[0].data
                for n, value in enumerate(self.metal.order):
                    out[4 * n : 4 * n + 4] = value.to_bytes(4, "little")
            else:
                self.metal.gpu(launch)

    def status(self) -> int:
        return self.metal.status

    def error(self) -> str:
        return "GPU hang"


@dataclass
class Encoder:
    commands: Commands
    arguments: dict[int, Any] = field(default_factory=dict)
    entry: str = ""

    def setComputePipelineState_(self, pipeline: Pipeline) -> None:
        self.entry, self.arguments = pipeline.entry, {}
        self.commands.metal.said.append(f"pipeline {pipeline.entry}")

    def setBuffer_offset_atIndex_(self, buffer: Buffer, offset: int, index: int) -> None:
        self.arguments[index] = Part(buffer, offset)

    def setBytes_length_atIndex_(self, data: bytes, length: int, index: int) -> None:
        assert len(data) == length
        self.arguments[index] = data

    def dispatchThreadgroups_threadsPerThreadgroup_(self, grid: Any, threads: Any) -> None:
        self.commands.metal.said.append("dispatch")
        self.commands.queued.append(Launch(self.entry, self.arguments, grid, threads))

    def endEncoding(self) -> None:
        self.commands.metal.said.append("end")
