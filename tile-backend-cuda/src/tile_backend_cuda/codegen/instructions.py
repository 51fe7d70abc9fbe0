"""The instructions of an architecture, for the lowering: which groups it has."""

from __future__ import annotations

from tile_core.hardware import TargetInfo
from tile_core.lowering.simt.instructions import Instructions

from ..compiler.options import Options
from .async_copies import CpAsync
from .bulk_engines import HopperEngines
from .dependent_launch import DependentLaunch
from .dot_products import ByteDots
from .matrix_unit import LANES, WarpMatrixUnit
from .tensor_memory import BlackwellEngines, TensorMemory
from .updates import Reductions
from .vector_moves import CudaVectors

ENGINES = {"wgmma": HopperEngines, "tcgen05": BlackwellEngines}


def instructions(info: TargetInfo, boxes: bool = True) -> Instructions:
    """The groups of instructions that the architecture has; without ``boxes`` no results leave through the copy engine."""
    engines = next((found for feature, found in ENGINES.items() if feature in info.features), None)
    return Instructions(
        matrix=WarpMatrixUnit() if any(atom.threads == LANES for atom in info.atoms) else None,
        vectors=CudaVectors(),
        dots=ByteDots(),
        succession=DependentLaunch() if Options.of(dict(info.target.options)).pdl else None,
        updates=Reductions(wide="red_vectors" in info.features),
        # where the copy engine is at work, what stands in for it must take tensors that begin anywhere
        copies=CpAsync() if "cp_async" in info.features and engines is None else None,
        bulk=engines(boxes) if engines else None,
        sums=TensorMemory() if "tcgen05" in info.features else None,
    )
