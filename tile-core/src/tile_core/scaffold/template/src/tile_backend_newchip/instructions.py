"""What the hardware has beyond loads, stores and arithmetic: matrix instructions as data, and groups of calls for the lowering.

Each group of ``tile_core.lowering.simt.instructions.Instructions`` that stays None is lowered in its generic form.
"""

from __future__ import annotations

from tile_core.hardware import Atom
from tile_core.lowering.simt.instructions import Instructions

ATOMS: tuple[Atom, ...] = ()
INSTRUCTIONS = Instructions()
