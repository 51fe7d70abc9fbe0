"""Matrix instructions of WGSL as data: a subgroup multiplies matrices whose elements only it can place.

``c`` is thus no fact but a choice: where this backend keeps the elements when they are registers. Operands come from shared
tiles.
"""

from __future__ import annotations

from tile_core.hardware import Atom
from tile_core.layout.digits import lane, reg, tile
from tile_core.layout.layout import Layout

MATRIX = "chromium-experimental-subgroup-matrix"
SOURCE = "Dawn, WGSL extension chromium_experimental_subgroup_matrix; sizes as adapter.info.subgroupMatrixConfigs has them"


def _spread(side: int) -> Layout:
    """Squares over 32 lanes: each has a run of one row."""
    per_row = 32 // side
    return tile((side, side), (lane(side, per_row),), (lane(per_row), reg(side // per_row)))


def _square(side: int, operand: str, result: str, rate: int) -> Atom:
    """``rate``: operations per clock and core."""
    layout = _spread(side)
    return Atom(
        f"subgroup_matrix.{side}x{side}x{side}.{result}.{operand}",
        (side, side, side),
        32,
        (operand, operand, result),
        None,
        None,
        lambda _: layout,
        rate,
        requires=(MATRIX,),
        source=SOURCE,
    )


# Metal's simdgroup matrices: both types are those of the operands
SIMDGROUP = (_square(8, "float16", "float16", 256), _square(8, "float32", "float32", 256))
# Vulkan's cooperative matrices, as NVIDIA's driver lists them
COOPERATIVE = (_square(16, "float16", "float32", 1024), _square(16, "float16", "float16", 1024))
