"""Puts the hand-made programs and descriptions of targets on the path."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
UNIT = Path(__file__).parents[1]
sys.path[:0] = [str(UNIT / "graph"), str(UNIT / "inference"), *map(str, ROOT.glob("tile-backend-*/src"))]
