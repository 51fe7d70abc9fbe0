"""Tensor maps as a launch specification describes them, in the words of the driver's encoder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# cuda.h: CUtensorMapDataType, CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill
TYPES = {
    "uint8": 0,
    "uint16": 1,
    "uint32": 2,
    "int32": 3,
    "uint64": 4,
    "int64": 5,
    "float16": 6,
    "float32": 7,
    "float64": 8,
    "bfloat16": 9,
    "float32_ftz": 10,
    "tfloat32": 11,
    "tfloat32_ftz": 12,
}
BYTES = {"uint8": 1, "uint16": 2, "float16": 2, "bfloat16": 2, "uint64": 8, "int64": 8, "float64": 8}
# types without a number of their own travel as plain bits
STORED_AS = {
    "bool": "uint8",
    "int8": "uint8",
    "int16": "uint16",
    "float8_e4m3fn": "uint8",
    "float8_e5m2": "uint8",
    "float8_e8m0fnu": "uint8",
}
SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}
PROMOTIONS = {0: 0, 64: 1, 128: 2, 256: 3}
FILLS = {"zero": 0, "nan": 1}

TUPLES = ("dims", "strides", "box", "steps")
RANK = 5
LARGEST_BOX = 256
ALIGNMENT = 16


@dataclass(frozen=True, slots=True)
class TensorMap:
    """How the copy engine sees a tensor: a row of ``LaunchSpec.extra["tensor_maps"]``.

    ``of``: the tensor parameter or workspace. ``dims`` in elements and ``strides`` in bytes, innermost dimension first, as numbers
    or expressions; ``strides`` has none for the innermost dimension, which is dense. ``box``: elements of one copy.
    ``swizzle``, ``promotion`` (of lines in L2): bytes, 0 for none. ``fill``: what reads beyond the tensor give.

    Raises:
        ValueError: the copy engine knows no such map (CUDA driver API, cuTensorMapEncodeTiled).
    """

    name: str
    of: str
    dtype: str
    dims: tuple[int | str, ...]
    strides: tuple[int | str, ...]
    box: tuple[int, ...]
    steps: tuple[int, ...] = ()
    swizzle: int = 0
    promotion: int = 0
    fill: str = "zero"

    def __post_init__(self) -> None:
        rank = len(self.dims)
        faults = {
            f"type {self.dtype}": self.stored not in TYPES,
            f"rank {rank}": not 1 <= rank <= RANK,
            f"{len(self.strides)} strides": len(self.strides) != rank - 1,
            f"box {self.box}": len(self.box) != rank or not all(1 <= b <= LARGEST_BOX for b in self.box),
            f"steps {self.steps}": len(self.steps) not in (0, rank),
            f"swizzle {self.swizzle}": self.swizzle not in SWIZZLES,
            f"promotion {self.promotion}": self.promotion not in PROMOTIONS,
            f"fill {self.fill}": self.fill not in FILLS,
            "a stride that is no multiple of 16 bytes": any(
                isinstance(s, int) and s % ALIGNMENT for s in self.strides
            ),
        }
        wrong = [what for what, is_wrong in faults.items() if is_wrong]
        row = 0 if wrong else self.box[0] * self.bytes
        if row % ALIGNMENT:
            wrong.append(f"rows of {row} bytes, no multiple of 16")
        if self.swizzle and row > self.swizzle:
            wrong.append(f"rows of {row} bytes, wider than the swizzle of {self.swizzle}")
        if wrong:
            raise ValueError(f"tensor map {self.name}: {', '.join(wrong)}")

    @property
    def stored(self) -> str:
        return STORED_AS.get(self.dtype, self.dtype)

    @property
    def bytes(self) -> int:
        """Of one element."""
        return BYTES.get(self.stored, 4)

    @staticmethod
    def of_row(row: Mapping[str, Any]) -> TensorMap:
        """From a launch specification, where tuples may have become lists."""
        values: dict[str, Any] = {k: tuple(v) if k in TUPLES else v for k, v in row.items()}
        return TensorMap(**values)

    def row(self) -> dict[str, Any]:
        """For a launch specification."""
        return {name: getattr(self, name) for name in self.__slots__}

    @property
    def numbers(self) -> tuple[int, int, int, int, int]:
        """Type, interleave, swizzle, promotion and fill as the driver numbers them."""
        return (
            TYPES[self.stored],
            0,
            SWIZZLES[self.swizzle],
            PROMOTIONS[self.promotion],
            FILLS[self.fill],
        )

    @property
    def all_steps(self) -> Sequence[int]:
        return self.steps or (1,) * len(self.box)
