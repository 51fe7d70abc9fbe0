"""The command ``tile``: look at targets and kernels, run and measure them. ``python -m tile_core`` is the same.

Exit status: 0 all well, 1 a finding or a failed kernel, 2 a wrong command line.
"""

from __future__ import annotations

from .main import COMMANDS, main

__all__ = ["COMMANDS", "main"]
