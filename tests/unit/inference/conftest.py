"""Puts the cases, the hand-made programs and the vendors' tables on the path."""

from __future__ import annotations

import sys
from pathlib import Path

from hypothesis import settings

ROOT = Path(__file__).parents[3]
sys.path[:0] = [
    str(Path(__file__).parent),
    str(Path(__file__).parents[1] / "graph"),
    *map(str, ROOT.glob("tile-backend-*/src")),
]
settings.register_profile("inference", deadline=None, max_examples=60)
settings.load_profile("inference")
