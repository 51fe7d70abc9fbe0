"""The named device helpers that generated CUDA calls, as data: one table prints the device's prelude and the emulator's."""

from __future__ import annotations

from .device_function import Helper
from .table import device_prelude, find, host_prelude, names, used

__all__ = ["Helper", "device_prelude", "find", "host_prelude", "names", "used"]
