"""``torch`` with ``torch.mps`` on a machine without one: a library's kernels remember how they were called.

How kernels are called is that of torch/csrc/mps/Module.cpp: arguments in order of buffers, ``threads`` and ``group_size``.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType, SimpleNamespace
from typing import Any

import torch as real

from tile_backend_metal.launcher import order


class Tensor(real.Tensor):
    """On the host, but it says ``mps``."""

    @property
    def device(self) -> Any:
        return SimpleNamespace(type="mps", index=0)

    def cpu(self) -> Any:
        return self.as_subclass(real.Tensor)


def tensor(shape: Any, dtype: str = "float32") -> Any:
    return real.zeros(shape, dtype=getattr(real, dtype)).as_subclass(Tensor)


@dataclass
class Call:
    entry: str
    arguments: tuple[Any, ...]
    threads: tuple[int, int, int]
    group: tuple[int, int, int]


class FakeMps(ModuleType):
    """The module ``torch``. ``most``: threads that a kernel takes; ``refuse``: what the compiler says."""

    def __init__(self) -> None:
        super().__init__("torch")
        self.sources: list[str] = []
        self.calls: list[Call] = []
        self.waits = 0
        self.most = 1024
        self.refuse = ""
        self.order = order.expected()
        self.events: list[str] = []
        self.mps: Any = SimpleNamespace(
            compile_shader=self.compile_shader,
            synchronize=self.synchronize,
            event=SimpleNamespace(Event=self.event),
        )
        self.backends = SimpleNamespace(mps=SimpleNamespace(is_available=lambda: True))

    def __getattr__(self, name: str) -> Any:
        return getattr(real, name)

    def compile_shader(self, text: str) -> Library:
        if self.refuse:
            raise SyntaxError(self.refuse)
        text.encode("ascii")
        self.sources.append(text)
        return Library(self)

    def synchronize(self) -> None:
        self.waits += 1

    def event(self, enable_timing: bool = False) -> Event:
        assert enable_timing
        return Event(self)

    def empty(self, *shape: Any, dtype: Any = None, device: Any = None) -> Any:
        return real.empty(*shape, dtype=dtype).as_subclass(Tensor)

    def zeros(self, *shape: Any, dtype: Any = None, device: Any = None) -> Any:
        return real.zeros(*shape, dtype=dtype).as_subclass(Tensor)


@dataclass
class Event:
    torch: FakeMps
    calls: int = -1

    def record(self) -> None:
        self.calls = len(self.torch.calls)
        self.torch.events.append("record")

    def synchronize(self) -> None:
        self.torch.events.append("synchronize")

    def elapsed_time(self, end: Event) -> float:
        """A quarter of a millisecond for each kernel between them."""
        assert 0 <= self.calls <= end.calls
        return 0.25 * (end.calls - self.calls)


@dataclass
class Library:
    torch: FakeMps

    def __getattr__(self, entry: str) -> Function:
        return Function(self.torch, entry)


@dataclass
class Function:
    torch: FakeMps
    entry: str

    @property
    def max_threads_per_threadgroup(self) -> int:
        return self.torch.most

    def __call__(self, *arguments: Any, threads: Any, group_size: Any) -> None:
        assert all(type(a) in (int, Tensor) for a in arguments), arguments
        self.torch.calls.append(Call(self.entry, arguments, threads, group_size))
        if self.entry == order.ENTRY:
            arguments[0][:] = real.tensor(self.torch.order)
