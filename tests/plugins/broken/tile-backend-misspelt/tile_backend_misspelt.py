"""A package whose hook is misspelt: an s is missing."""

from __future__ import annotations

from tile_core.hookspecs import hookimpl


@hookimpl
def tile_register_backend(registry):
    pass
