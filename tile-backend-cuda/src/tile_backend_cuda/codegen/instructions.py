"""The instructions of an architecture, for the lowering: which groups it has."""

from __future__ import annotations

from tile_core.hardware import TargetInfo
from tile_core.lowering.simt.instructions import Instructions

from .bulk_engines import HopperEngines


def instructions(info: TargetInfo, boxes: bool = True) -> Instructions:
    """The groups of instructions that the architecture has; without ``boxes`` no results leave through the copy engine."""
    return Instructions(bulk=HopperEngines(boxes) if "wgmma" in info.features else None)
