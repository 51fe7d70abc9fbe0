"""Lets the tests import the hand-written kernels beside them."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "kernels"))
