"""The instructions of an architecture, for the lowering: which groups it has."""

from __future__ import annotations

from tile_core.hardware import TargetInfo
from tile_core.lowering.simt.instructions import Instructions

from .async_copies import CpAsync
from .bulk_engines import HopperEngines
from .matrix_unit import LANES, WarpMatrixUnit


def instructions(info: TargetInfo, bulk: bool = True) -> Instructions:
    """The groups of instructions that the architecture has; without ``bulk`` no copy engine and what depends on it."""
    groups = any(e.name == "copy" and e.observed == "group" for e in info.engines)
    return Instructions(
        matrix=WarpMatrixUnit() if any(atom.threads == LANES for atom in info.atoms) else None,
        copies=CpAsync() if groups else None,
        bulk=HopperEngines() if bulk and "wgmma" in info.features else None,
    )
