"""The instructions of an architecture, for the lowering: which groups it has."""

from __future__ import annotations

from tile_core.hardware import TargetInfo
from tile_core.lowering.simt.instructions import Instructions

from .bulk_engines import HopperEngines


def instructions(info: TargetInfo, bulk: bool = True) -> Instructions:
    """The groups of instructions that the architecture has; without ``bulk`` no copy engine and what depends on it."""
    return Instructions(bulk=HopperEngines() if bulk and "wgmma" in info.features else None)
