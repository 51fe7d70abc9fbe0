"""A backend that was written for a later version of the interface."""

from __future__ import annotations

from tile_core.backend import API, ApiVersion, FactsOnly
from tile_core.hookspecs import hookimpl


class NewApi(FactsOnly):
    name = "newapi"
    api = ApiVersion(API.major, API.minor + 98)

    def targets(self):
        return ()


@hookimpl
def tile_register_backends(registry):
    registry.add(NewApi())
