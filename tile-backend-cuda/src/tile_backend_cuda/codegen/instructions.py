"""The instructions of an architecture, for the lowering: which groups it has."""

from __future__ import annotations

from tile_core.hardware import TargetInfo
from tile_core.lowering.simt.instructions import Instructions

from .vector_moves import CudaVectors


def instructions(info: TargetInfo) -> Instructions:
    """The groups of instructions that the architecture has."""
    return Instructions(vectors=CudaVectors())
