"""A backend that loads, and whose device probe raises, which it never should."""

from __future__ import annotations

from tile_core.backend import ApiVersion, FactsOnly
from tile_core.hookspecs import hookimpl


class Sick(FactsOnly):
    name = "sick"
    api = ApiVersion(1, 0)

    def targets(self):
        return ()

    def devices(self):
        raise OSError("the driver hung up")


@hookimpl
def tile_register_backends(registry):
    registry.add(Sick())
