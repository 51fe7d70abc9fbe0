"""The one hook that a backend's package implements, and the marker it is written with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import pluggy

if TYPE_CHECKING:
    from .backend import Backend

PROJECT = "tile_core"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


class BackendRegistry(Protocol):
    """What a hook is given."""

    def add(self, backend: Backend) -> None:
        """Announce one backend. Raises ``BackendIncompatible`` or ``BackendConflict``."""
        ...


# Historic: a plugin that is registered later is called at that moment, which is what makes loading by name possible.
@hookspec(historic=True)
def tile_register_backends(registry: BackendRegistry) -> None:
    """Call ``registry.add(backend)`` once for each backend this package provides.

    Runs when one of the package's names is first asked for. Import nothing heavy here: no torch, no vendor library, no
    device probe.
    """
