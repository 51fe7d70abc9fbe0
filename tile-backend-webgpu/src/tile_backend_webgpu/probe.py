"""Adapters that the package ``wgpu`` lists, if the program has imported it: starting it takes seconds, so this does not."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from tile_core.hardware import Device, Target

LIBRARY = "wgpu"


def devices() -> tuple[Device, ...]:
    """The adapters, Vulkan, Metal and Direct3D 12 ones before others. () until ``wgpu`` is imported."""
    library = sys.modules.get(LIBRARY)
    if library is None:
        return ()
    found = [
        dict(adapter.info) | {"vendor": adapter.info.get("vendor", "")} for adapter in _adapters(library)
    ]
    found.sort(key=lambda info: info.get("backend_type") == "OpenGL")
    return tuple(_device(index, info) for index, info in enumerate(found))


def arch_of(info: Mapping[str, Any]) -> str:
    """The target whose limits an adapter grants: a known one by its name, else the default limits of the standard."""
    text = f"{info.get('vendor', '')} {info.get('device', '')}".lower()
    names = {"llvmpipe": "lavapipe", "apple": "apple"}
    return next((arch for word, arch in names.items() if word in text), "default")


def _adapters(library: Any) -> list[Any]:
    try:
        return list(library.gpu.enumerate_adapters_sync())
    except Exception:  # a library without any driver raises its own kinds of error
        return []


def _device(index: int, info: Mapping[str, Any]) -> Device:
    name = f"{info.get('device', 'unknown adapter')} ({info.get('backend_type', '')})"
    return Device(Target("webgpu", arch_of(info)), index, name, driver=str(info.get("description", "")))
