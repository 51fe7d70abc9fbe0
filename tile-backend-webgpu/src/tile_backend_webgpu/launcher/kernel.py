"""A loaded kernel: copies arguments to buffers of the device, runs all launches in one pass, copies back what was written."""

from __future__ import annotations

import ctypes
import importlib
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

from tile_core.backend import LaunchSpec
from tile_core.errors import ArgumentError, BackendError

from ..probe import LIBRARY
from .host import HostTensor, Numbers, tensors, workspace_bytes
from .session import Session

PACKED = {"i32": "i", "u32": "I", "f32": "f"}
LIMIT = 65535  # maxComputeWorkgroupsPerDimension: every device grants it, none is asked for more
UNIFORMS = 256  # bytes from the uniforms of one dispatch to the next: minUniformBufferOffsetAlignment


@dataclass(frozen=True)
class Dispatch:
    """A part of a grid that one dispatch can run: number of the entry, first block and count along each axis."""

    entry: int
    first: tuple[int, ...]
    count: tuple[int, ...]


def dispatches(grids: Sequence[tuple[int, ...]]) -> Iterator[Dispatch]:
    """All blocks of all launches."""
    for n, grid in enumerate(grids):
        full = (*grid, 1, 1, 1)[:3]
        for first in product(*(range(0, extent, LIMIT) for extent in full)):
            count = tuple(min(LIMIT, e - f) for e, f in zip(full, first, strict=True))
            yield Dispatch(n, first, count)


class WebgpuKernel:
    """Calls may come from several threads; one runs at a time. Buffers are kept for the next call with the same sizes."""

    def __init__(self, session: Session, module: Any, launch: LaunchSpec) -> None:
        self.session, self.launch = session, launch
        self._module = module
        self._buffers: dict[str, Any] = {}
        self._usage: Any = importlib.import_module(LIBRARY).BufferUsage
        self._pipelines = [self._pipeline(entry) for entry, _, _ in launch.entries]

    def __call__(
        self, arguments: Sequence[int | float], grids: Sequence[tuple[int, ...]], stream: int | None = None
    ) -> None:
        """Run all launches and wait for them: results are in the host's memory when this returns."""
        numbers = {p.name: v for p, v in zip(self.launch.params, arguments, strict=True)}
        held = list(tensors(self.launch, arguments, numbers))
        work = list(dispatches(grids))
        if not work:
            return
        with self.session.lock:
            self._run(held, numbers, work)

    def _run(self, held: Sequence[HostTensor], numbers: Numbers, work: Sequence[Dispatch]) -> None:
        device, usage = self.session.device, self._usage
        bound = {t.name: self._device_copy(t) for t in held}
        for k, (shape, element) in enumerate(self.launch.extra.get("workspaces", ())):
            bound[f"workspace{k}"] = self._buffer(
                f"workspace{k}", workspace_bytes(shape, element, numbers), usage.STORAGE
            )
        uniforms = self._uniforms(numbers, work)
        encoder = device.create_command_encoder()
        clock = self._clock() if self.session.passes is not None else None
        step = encoder.begin_compute_pass(**({"timestamp_writes": clock.writes} if clock else {}))
        groups = [self._group(n, bound, uniforms) for n in range(len(self._pipelines))]
        for k, d in enumerate(work):
            step.set_pipeline(self._pipelines[d.entry])
            step.set_bind_group(0, groups[d.entry], [k * UNIFORMS])
            step.dispatch_workgroups(*d.count)
        step.end()
        back = [(t, self._staged(encoder, t, bound[t.name])) for t in held if t.written and t.size]
        if clock:
            clock.resolve(encoder)
        device.queue.submit([encoder.finish()])
        for tensor, staging in back:
            _take(tensor, staging)
        if clock and self.session.passes is not None:
            self.session.passes.append(clock.nanoseconds())

    def _buffer(self, name: str, size: int, usage: int) -> Any:
        """A buffer of that name and size: the one of the last call, or a new one."""
        found = self._buffers.get(name)
        if found is None or found.size != size:
            if found is not None:
                found.destroy()
            found = self._buffers[name] = self.session.buffer(size, usage)
        return found

    def _device_copy(self, t: HostTensor) -> Any:
        limit = self.session.limits["max-storage-buffer-binding-size"]
        if t.room > limit:
            raise ArgumentError(
                f"{t.name} has {t.size} bytes, this adapter takes tensors of at most {limit}",
                help="split it, or run on another target",
            )
        usage = self._usage
        buffer = self._buffer(t.name, t.room, usage.STORAGE | usage.COPY_DST | usage.COPY_SRC)
        if t.given and t.size:
            whole = t.size // 4 * 4
            if whole:
                self.session.device.queue.write_buffer(buffer, 0, t.memory[:whole])
            if t.size > whole:  # copies are of whole words; what is beyond the end is nobody's
                rest = bytes(t.memory[whole:]).ljust(4, b"\0")
                self.session.device.queue.write_buffer(buffer, whole, rest)
        return buffer

    def _staged(self, encoder: Any, t: HostTensor, buffer: Any) -> Any:
        usage = self._usage
        staging = self._buffer(f"{t.name} staging", t.room, usage.MAP_READ | usage.COPY_DST)
        encoder.copy_buffer_to_buffer(buffer, 0, staging, 0, t.room)
        return staging

    def _uniforms(self, numbers: Numbers, work: Sequence[Dispatch]) -> Any:
        """The numbers of each dispatch, one after the other."""
        rows = self.launch.extra["uniforms"]
        values = [v for p, v in zip(self.launch.params, numbers.values(), strict=True) if p.kind != "tensor"]
        tail = b"".join(_number(kind, v) for (_, kind), v in zip(rows, values, strict=True))
        parts = [(struct.pack("<3I", *d.first) + tail).ljust(UNIFORMS, b"\0") for d in work]
        size = self._uniform_size
        data = b"".join(parts) + bytes(max(0, size - UNIFORMS))
        buffer = self._buffer("uniforms", len(data), self._usage.UNIFORM | self._usage.COPY_DST)
        self.session.device.queue.write_buffer(buffer, 0, data)
        return buffer

    @cached_property
    def _uniform_size(self) -> int:
        size = 4 * (3 + len(self.launch.extra["uniforms"]))
        if size > UNIFORMS:
            raise ArgumentError(
                f"the kernel has {size // 4 - 3} numbers and dimensions, this launcher passes {UNIFORMS // 4 - 3}"
            )
        return -(-size // 16) * 16

    def _group(self, entry: int, bound: Mapping[str, Any], uniforms: Any) -> Any:
        name = self.launch.entries[entry][0]
        entries = [{"binding": 0, "resource": {"buffer": uniforms, "offset": 0, "size": self._uniform_size}}]
        for n, (tensor, _) in enumerate(self.launch.extra["bindings"][name], 1):
            whole = {"buffer": bound[tensor], "offset": 0, "size": bound[tensor].size}
            entries.append({"binding": n, "resource": whole})
        return self.session.device.create_bind_group(layout=self._layouts[name], entries=entries)

    @cached_property
    def _layouts(self) -> dict[str, Any]:
        """The bindings of each entry point. They are made from the launch specification: the text may use fewer."""
        visible = importlib.import_module(LIBRARY).ShaderStage.COMPUTE
        types = {"read": "read-only-storage", "read_write": "storage"}
        out: dict[str, Any] = {}
        for name, rows in self.launch.extra["bindings"].items():
            kinds = [
                {"type": "uniform", "has_dynamic_offset": True},
                *({"type": types[how]} for _, how in rows),
            ]
            entries = [{"binding": n, "visibility": visible, "buffer": kind} for n, kind in enumerate(kinds)]
            out[name] = self.session.device.create_bind_group_layout(entries=entries)
        return out

    def _pipeline(self, entry: str) -> Any:
        device = self.session.device
        layout = device.create_pipeline_layout(bind_group_layouts=[self._layouts[entry]])
        try:
            return device.create_compute_pipeline(
                layout=layout, compute={"module": self._module, "entry_point": entry}
            )
        except Exception as error:
            raise BackendError(f"the driver does not take {entry}: {error}") from error

    def _clock(self) -> Clock:
        return Clock(self.session, self._usage)


class Clock:
    """Timestamps at the begin and the end of a pass."""

    def __init__(self, session: Session, usage: Any) -> None:
        self.session = session
        self.queries = session.device.create_query_set(type="timestamp", count=2)
        self.times = session.buffer(16, usage.QUERY_RESOLVE | usage.COPY_SRC)
        self.writes = {
            "query_set": self.queries,
            "beginning_of_pass_write_index": 0,
            "end_of_pass_write_index": 1,
        }

    def resolve(self, encoder: Any) -> None:
        encoder.resolve_query_set(self.queries, 0, 2, self.times, 0)

    def nanoseconds(self) -> float:
        begin, end = struct.unpack("<2Q", self.session.device.queue.read_buffer(self.times))
        return float(end - begin)


def _number(kind: str, value: int | float) -> bytes:
    match kind:
        case "f32":
            return struct.pack("<f", value)
        case "i32":
            return struct.pack("<i", value)
        case _:
            return struct.pack("<I", int(value) & 0xFFFFFFFF)


def _take(tensor: HostTensor, staging: Any) -> None:
    staging.map_sync("READ")
    try:
        data = staging.read_mapped(0, tensor.room, copy=False)
        ctypes.memmove(tensor.address, bytes(data[: tensor.size]), tensor.size)
        del data
    finally:
        staging.unmap()
