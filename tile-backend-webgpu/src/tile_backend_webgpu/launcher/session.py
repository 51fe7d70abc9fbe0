"""One opened device: the adapter's features and limits, the queue, and the clock of its passes."""

from __future__ import annotations

import importlib
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from threading import RLock
from typing import Any

from tile_core.errors import BackendError, NoDevice

from ..probe import LIBRARY, adapters

FEATURES = ("shader-f16", "subgroup", "timestamp-query")
LIMITS = (
    "max-compute-workgroup-storage-size",
    "max-compute-invocations-per-workgroup",
    "max-compute-workgroup-size-x",
    "max-storage-buffer-binding-size",
    "max-storage-buffers-per-shader-stage",
    "max-buffer-size",
)
CLOCK = "timestamp-query"

# Whether lanes are numbered as invocations are, in groups of one size: the standard promises neither.
LANES = """
@group(0) @binding(0) var<storage, read_write> found: array<u32>;
@compute @workgroup_size(128)
fn lanes(@builtin(local_invocation_index) i: u32, @builtin(subgroup_size) size: u32, @builtin(subgroup_invocation_id) lane: u32) {
  found[i] = size * 1024u + lane;
}
"""


@dataclass
class Session:
    """``passes``: while the clock runs, nanoseconds of each pass that was submitted."""

    adapter: Any
    device: Any
    lock: RLock = field(default_factory=RLock)
    passes: list[float] | None = None

    @property
    def limits(self) -> Any:
        return self.device.limits

    @property
    def has_clock(self) -> bool:
        return CLOCK in self.device.features

    @contextmanager
    def clocked(self) -> Generator[list[float], None, None]:
        """Collects the times of passes, in nanoseconds."""
        with self.lock:
            self.passes = []
            try:
                yield self.passes
            finally:
                self.passes = None

    def buffer(self, size: int, usage: int) -> Any:
        return self.device.create_buffer(size=size, usage=usage)

    @cached_property
    def subgroup(self) -> int:
        """Lanes of a subgroup, if they are numbered as invocations are; else 0."""
        if "subgroup" not in self.device.features:
            return 0
        usage = importlib.import_module(LIBRARY).BufferUsage
        module = self.device.create_shader_module(code=LANES)
        pipeline = self.device.create_compute_pipeline(
            layout="auto", compute={"module": module, "entry_point": "lanes"}
        )
        found = self.buffer(512, usage.STORAGE | usage.COPY_SRC)
        group = self.device.create_bind_group(
            layout=pipeline.get_bind_group_layout(0),
            entries=[{"binding": 0, "resource": {"buffer": found, "offset": 0, "size": 512}}],
        )
        encoder = self.device.create_command_encoder()
        step = encoder.begin_compute_pass()
        step.set_pipeline(pipeline)
        step.set_bind_group(0, group)
        step.dispatch_workgroups(1)
        step.end()
        self.device.queue.submit([encoder.finish()])
        words = self.device.queue.read_buffer(found).cast("I")
        size = words[0] // 1024
        return size if all(words[i] == size * 1024 + i % size for i in range(128)) else 0


@lru_cache(maxsize=8)
def opened(index: int) -> Session:
    """The session of adapter number ``index``; always the same. Raises ``NoDevice`` or ``BackendError``."""
    found = adapters()
    if index >= len(found):
        raise NoDevice(
            f"no WebGPU adapter {index} here",
            help="pip install wgpu, and the GPU's Vulkan driver; without a GPU apt-get install mesa-vulkan-drivers libvulkan1",
        )
    adapter = found[index]
    try:
        device = adapter.request_device_sync(
            required_features=[f for f in FEATURES if f in adapter.features],
            required_limits={name: adapter.limits[name] for name in LIMITS},
        )
    except Exception as error:
        raise BackendError(f"the WebGPU adapter {index} does not open: {error}") from error
    return Session(adapter, device)
