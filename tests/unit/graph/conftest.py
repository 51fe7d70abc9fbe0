"""Puts the hand-made programs and the vendors' tables on the path."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
sys.path[:0] = [str(Path(__file__).parent), *map(str, ROOT.glob("tile-backend-*/src"))]
