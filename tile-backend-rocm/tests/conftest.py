"""Lets the tests import the plain modules beside them."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path += [str(Path(__file__).parent / folder) for folder in ("published", "fake", "kernels")]
