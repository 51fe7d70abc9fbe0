"""The conformance kit, run on the embedded backend `interpreter`."""

from __future__ import annotations

from tile_core.testing.conformance import *

TILE_BACKEND = "interpreter"
