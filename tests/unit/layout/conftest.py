"""Puts the oracle and the vendors' tables of instructions on the path, and says how many examples to try."""

from __future__ import annotations

import sys
from pathlib import Path

from hypothesis import settings

ROOT = Path(__file__).parents[3]
sys.path[:0] = [str(Path(__file__).parent), *map(str, ROOT.glob("tile-backend-*/src"))]
settings.register_profile("layout", deadline=None, max_examples=60)
settings.load_profile("layout")
