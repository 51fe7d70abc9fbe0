"""Metal 4 tensor products as facts: what ``matmul2d`` multiplies, and what it needs. No code is generated for it.

From apple10 on (M5) it reaches the matrix units of the GPU's cores; on older families it runs on the same units as simdgroup
matrices. Which lane holds which element of its cooperative tensors is opaque, so it has no row in the atom table: a kernel
that used it would have to keep its sums in a cooperative tensor and its operands in memory.
"""

from __future__ import annotations

from dataclasses import dataclass

SOURCE = (
    "Apple, Metal Performance Primitives, MPPTensorOpsMatMul2d.h; Metal Shading Language specification 4.0"
)
LANGUAGE = "4.0"
MACOS = (26, 0)
FEATURE = "tensor_ops"  # of targets whose cores have units of their own for it


@dataclass(frozen=True, slots=True)
class Product:
    """Types of ``C += A B``."""

    a: str
    b: str
    c: str


F16, BF16, F32, I8, I32 = "float16", "bfloat16", "float32", "int8", "int32"

PRODUCTS = frozenset(
    {
        *(Product(F16, F16, c) for c in (F16, F32)),
        *(Product(BF16, BF16, c) for c in (BF16, F32)),
        *(Product(a, b, F32) for a, b in ((F32, F32), (F16, F32), (F32, F16), (BF16, F32), (F32, BF16))),
        *(Product(F16, BF16, c) for c in (F16, BF16, F32)),
        *(Product(BF16, F16, c) for c in (F16, BF16, F32)),
        *(Product(a, b, c) for t in (F16, BF16) for a, b in ((t, I8), (I8, t)) for c in (t, F32)),
        *(Product(a, b, F32) for a, b in ((F32, I8), (I8, F32))),
        Product(I8, I8, I32),
    }
)


def multiplies(a: str, b: str, c: str) -> bool:
    """Whether ``matmul2d`` takes operands and sums of these types."""
    return Product(a, b, c) in PRODUCTS
