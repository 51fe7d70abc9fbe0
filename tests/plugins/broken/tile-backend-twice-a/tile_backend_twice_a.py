"""One of two packages that provide a backend of the same name."""

from __future__ import annotations

from tile_core.backend import ApiVersion, FactsOnly
from tile_core.hookspecs import hookimpl


class Twice(FactsOnly):
    name = "twice"
    api = ApiVersion(1, 0)

    def targets(self):
        return ()


@hookimpl
def tile_register_backends(registry):
    registry.add(Twice())
