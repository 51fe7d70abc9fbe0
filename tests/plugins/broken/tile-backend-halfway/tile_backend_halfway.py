"""A package that registers a backend and then fails."""

from __future__ import annotations

from tile_core.backend import ApiVersion, FactsOnly
from tile_core.hookspecs import hookimpl


class Halfway(FactsOnly):
    name = "halfway"
    api = ApiVersion(1, 0)

    def targets(self):
        return ()


@hookimpl
def tile_register_backends(registry):
    registry.add(Halfway())
    raise ValueError("second thoughts")
