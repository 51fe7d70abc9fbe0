"""A package that registers a backend under a name that its metadata does not have."""

from __future__ import annotations

from tile_core.backend import ApiVersion, FactsOnly
from tile_core.hookspecs import hookimpl


class Stray(FactsOnly):
    name = "stray"
    api = ApiVersion(1, 0)

    def targets(self):
        return ()


@hookimpl
def tile_register_backends(registry):
    registry.add(Stray())
