"""A package that registers nothing."""

from __future__ import annotations

from tile_core.hookspecs import hookimpl


@hookimpl
def tile_register_backends(registry):
    pass
