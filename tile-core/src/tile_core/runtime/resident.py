"""A compiled kernel and the devices it is loaded on: where it came from is its subclass's business."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from threading import RLock

from ..backend import Backend, LoadedKernel
from ..checks import DEVICES
from ..errors import BackendError, NoDevice
from ..hardware import Device, Target
from ..registry import registry
from .cache import Entry
from .calling import Direct, direct


class Resident(ABC):
    """Loaded when first needed on each device. Threads may share it."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self._lock = RLock()
        self._loaded: dict[int, LoadedKernel] = {}
        self._direct: dict[int, Direct | None] = {}

    @property
    @abstractmethod
    def entry(self) -> Entry:
        """The compiled kernel."""

    @cached_property
    def backend(self) -> Backend:
        return registry().get(self.target.backend)

    def loaded(self, index: int) -> LoadedKernel:
        """The kernel on device number ``index``. Raises ``NoDevice`` saying what is missing, ``BackendError`` if it
        is of another architecture.
        """
        found = self._loaded.get(index)
        return self._load(index) if found is None else found

    def _load(self, index: int) -> LoadedKernel:
        with self._lock:
            if index not in self._loaded:
                launcher = self.backend.launcher(self._device(index))
                entry = self.entry
                self._loaded[index] = launcher.load(entry.artifact, entry.source.launch)
            return self._loaded[index]

    def direct(self, index: int) -> Direct | None:
        """The way around Python for further calls on a device, if the loaded kernel has one; always the same object."""
        if index not in self._direct:
            loaded = self.loaded(index)
            with self._lock:
                self._direct.setdefault(index, direct(loaded, self.entry.source.launch))
        return self._direct[index]

    def _device(self, index: int) -> Device:
        devices = self.backend.devices()
        if index < len(devices):
            return self._able(devices[index])
        findings = {c.name: c.run() for c in self.backend.checks()}
        missing = "; ".join(f.message for f in findings.values() if f.level == "error")
        own = findings.get(DEVICES)
        remedy = f"{own.remedy}; " if own and own.level != "ok" and own.remedy else ""
        raise NoDevice(
            f"there is no {self.backend.name} device {index} here{': ' + missing if missing else ''}",
            help=f"{remedy}`tile doctor` says more; compiling for it works without a device",
        )

    def _able(self, device: Device) -> Device:
        if not self.backend.runs(self.target, device):
            raise BackendError(
                f"this kernel is compiled for {self.target}, device {device.index} ({device.name}) is {device.target}",
                help=f"compile or export it for {device.target}",
            )
        return device
