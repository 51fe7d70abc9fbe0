"""The instructions of an architecture, for the lowering: which groups it has."""

from __future__ import annotations

from tile_core.hardware import TargetInfo
from tile_core.lowering.simt.instructions import Instructions

from .dot_products import ByteDots
from .lds_copies import LdsCopies
from .matrix_unit import WaveMatrixUnit
from .updates import PackedAdds
from .vector_moves import RocmVectors

PACKED = {"pk_add_f16": "float16", "pk_add_bf16": "bfloat16"}


def instructions(info: TargetInfo) -> Instructions:
    """The groups of instructions that the architecture has."""
    wave = info.subgroup
    return Instructions(
        matrix=WaveMatrixUnit(wave) if info.atoms else None,
        copies=_copies(info),
        vectors=RocmVectors(wave),
        updates=PackedAdds(tuple(t for feature, t in PACKED.items() if feature in info.features)),
        dots=ByteDots() if "dot4" in info.features else None,
    )


def _copies(info: TargetInfo) -> LdsCopies | None:
    if "buffer_load_lds" not in info.features:
        return None
    sizes = (16, 4) if "global_load_lds_16" in info.features else (4,)
    return LdsCopies(info.subgroup, "global_load_lds" not in info.features, sizes)
