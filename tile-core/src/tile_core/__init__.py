"""tile: a tile-level kernel language, and the compiler and runtime behind it.

``import tile_core as tile, tile_core.language as T``. Everything is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .errors import (
        ArgumentError,
        BackendConflict,
        BackendError,
        BackendIncompatible,
        BackendLoadFailed,
        BackendNotFound,
        InternalError,
        KernelError,
        NoDevice,
        TileError,
        Unsupported,
    )
    from .expr import ceildiv as cdiv
    from .hardware import Target
    from .runtime import Bundle, Comparison, Kernel, bench, compare, compile, jit, load, spec
    from .select import target

__version__ = "0.1.0"

PUBLIC = {
    "ArgumentError": "errors",
    "BackendConflict": "errors",
    "BackendError": "errors",
    "BackendIncompatible": "errors",
    "BackendLoadFailed": "errors",
    "BackendNotFound": "errors",
    "InternalError": "errors",
    "KernelError": "errors",
    "NoDevice": "errors",
    "TileError": "errors",
    "Unsupported": "errors",
    "Target": "hardware",
    "target": "select",
    "Bundle": "runtime",
    "Comparison": "runtime",
    "Kernel": "runtime",
    "bench": "runtime",
    "compare": "runtime",
    "compile": "runtime",
    "jit": "runtime",
    "load": "runtime",
    "spec": "runtime",
}


def __getattr__(name: str) -> Any:
    if name == "cdiv":
        return import_module(".expr", __name__).ceildiv
    if name not in PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{PUBLIC[name]}", __name__), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


__all__ = [
    "ArgumentError",
    "BackendConflict",
    "BackendError",
    "BackendIncompatible",
    "BackendLoadFailed",
    "BackendNotFound",
    "Bundle",
    "Comparison",
    "InternalError",
    "Kernel",
    "KernelError",
    "NoDevice",
    "Target",
    "TileError",
    "Unsupported",
    "bench",
    "cdiv",
    "compare",
    "compile",
    "jit",
    "load",
    "spec",
    "target",
]
