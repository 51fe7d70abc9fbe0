"""The hook that tile-core finds this backend by."""

from __future__ import annotations

from tile_core.hookspecs import BackendRegistry, hookimpl

from .backend import NewchipBackend


@hookimpl
def tile_register_backends(registry: BackendRegistry) -> None:
    registry.add(NewchipBackend())
