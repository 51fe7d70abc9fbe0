"""The instructions of Apple GPUs, for the lowering: which groups they have."""

from __future__ import annotations

from tile_core.hardware import TargetInfo
from tile_core.lowering.simt.instructions import Instructions

from .matrix_unit import SimdgroupMatrixUnit
from .moves import MetalVectors


def instructions(info: TargetInfo) -> Instructions:
    """The groups of instructions that the family has."""
    return Instructions(matrix=SimdgroupMatrixUnit() if info.atoms else None, vectors=MetalVectors())
