"""Adapters that the package ``wgpu`` finds, and the target whose limits each of them grants."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from tile_core.hardware import Device, Target

from .targets import GRANTED, Granted

LIBRARY = "wgpu"
LAST = ("OpenGL", "OpenGLES")  # drivers of the last resort


def devices() -> tuple[Device, ...]:
    """The adapters; those of OpenGL, which are the same hardware again, only where there are no others. () without any driver."""
    return tuple(_device(n, adapter) for n, adapter in enumerate(adapters()))


@lru_cache(maxsize=1)
def adapters() -> tuple[Any, ...]:
    """Adapters of the library, in the order of device numbers. Starts the library: a second at the first call."""
    try:
        library: Any = importlib.import_module(LIBRARY)
        found = list(library.gpu.enumerate_adapters_sync())
    except Exception:  # not installed, or without any driver, of which it raises its own kinds of error
        return ()
    able = [a for a in found if a.info.get("backend_type") not in LAST]
    return tuple(able or found)


def arch_of(info: Mapping[str, Any], limits: Mapping[str, int], features: frozenset[str]) -> str:
    """The target that an adapter is: one that is known by its name, if it grants what that asks for; else the default."""
    text = f"{info.get('vendor', '')} {info.get('device', '')} {info.get('description', '')}".lower()
    named = [g for g in GRANTED if g.word and g.word in text and _grants(g, limits, features)]
    return named[0].arch if named else "default"


def _grants(wanted: Granted, limits: Mapping[str, int], features: frozenset[str]) -> bool:
    return all(limits.get(name, 0) >= least for name, least in wanted.limits().items()) and (
        wanted.features <= features
    )


def features_of(of: Any) -> frozenset[str]:
    """Features of an adapter or an opened device, named as the standard has them."""
    return frozenset("subgroups" if f == "subgroup" else str(f) for f in of.features)


def _device(index: int, adapter: Any) -> Device:
    info: Mapping[str, Any] = adapter.info
    arch = arch_of(info, dict(adapter.limits), features_of(adapter))
    name = f"{info.get('device', 'unknown adapter')} ({info.get('backend_type', '')})"
    return Device(Target("webgpu", arch), index, name, driver=str(info.get("description", "")))
