"""The instructions of an architecture, for the lowering: which groups it has."""

from __future__ import annotations

from tile_core.hardware import TargetInfo
from tile_core.lowering.simt.instructions import Instructions

from .async_copies import CpAsync
from .matrix_unit import LANES, WarpMatrixUnit


def instructions(info: TargetInfo) -> Instructions:
    """The groups of instructions that the architecture has."""
    warp = any(atom.threads == LANES for atom in info.atoms)
    groups = any(e.name == "copy" and e.observed == "group" for e in info.engines)
    return Instructions(
        matrix=WarpMatrixUnit() if warp else None,
        copies=CpAsync() if groups else None,
    )
