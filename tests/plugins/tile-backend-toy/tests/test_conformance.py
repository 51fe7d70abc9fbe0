"""The conformance kit of tile-core, run on this backend."""

from __future__ import annotations

from tile_core.testing.conformance import *

TILE_BACKEND = "toy"
