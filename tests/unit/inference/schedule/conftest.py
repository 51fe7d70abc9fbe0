"""Puts the loop bodies, the simulator and the examples on the path."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[3] / "examples")]
