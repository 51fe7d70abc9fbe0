"""The entry point of the ``cpu`` backend, which is part of tile-core."""

from __future__ import annotations

from typing import Any

import pluggy

from .backend import CpuBackend

hookimpl = pluggy.HookimplMarker("tile_core")


@hookimpl
def tile_register_backends(registry: Any) -> None:
    registry.add(CpuBackend())
