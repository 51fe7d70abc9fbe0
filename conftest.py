"""Whatever a test compiles is verified as far as it can be."""

from __future__ import annotations

import os

os.environ.setdefault("TILE_VERIFY", "always")
