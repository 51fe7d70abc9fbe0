"""Products in the public language, and what the emulator and the interpreter say of the code that is generated for them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import tile_core.language as T
from tile_backend_cuda.backend import CudaBackend
from tile_backend_cuda.prelude import emulate
from tile_core import interpreter
from tile_core.backend import Source
from tile_core.errors import Unsupported
from tile_core.hardware import Target
from tile_core.testing import arguments, stages
from tile_core.testing.kernels import Case, gemm

# types of the operands, the sums and the result, and how far one rounded term may be off
TYPES: dict[str, tuple[tuple[str, str, str], float]] = {
    "half": (("float16", "float32", "float32"), 2e-3),
    "half_sums": (("float16", "float16", "float16"), 4e-2),
    "bfloat": (("bfloat16", "float32", "float32"), 1e-2),
    "rounded": (("float32", "float32", "float32"), 4e-3),
    "signed": (("int8", "int32", "int32"), 0),
    "unsigned": (("uint8", "int32", "int32"), 0),
    "double": (("float64", "float64", "float64"), 1e-9),
    "e4m3": (("float8_e4m3fn", "float32", "float32"), 1e-3),
    "e5m2": (("float8_e5m2", "float32", "float32"), 1e-3),
}


@dataclass(frozen=True)
class Product:
    """``C = op(A) op(B)`` for one architecture. ``places``: where A, B and the sums are, if they are not looped over."""

    types: str
    arch: str
    extents: tuple[int, int, int]
    block: tuple[int, int, int]
    threads: int = 128
    stages: int = 2
    transpose_a: bool = False
    transpose_b: bool = False
    places: tuple[str, str, str] | None = None
    clear: bool = False

    def kernel(self) -> Any:
        types, _ = TYPES[self.types]
        turned = {"transpose_a": self.transpose_a, "transpose_b": self.transpose_b}
        if self.places is not None:
            return placed(self.extents, types, self.places, self.threads, clear=self.clear, **turned)
        return gemm(*self.extents, self.block, types, threads=self.threads, stages=self.stages, **turned)

    @cached_property
    def case(self) -> Case:
        types, off = TYPES[self.types]
        atol = off * max(1, self.extents[2]) ** 0.5
        return Case(str(self), self.kernel, frozenset(types), rtol=off, atol=atol)

    def source(self) -> Source:
        """Raises ``Unsupported`` if the architecture has too little shared memory."""
        backend = CudaBackend()
        return stages.emit(self.case, backend, backend.info(Target("cuda", self.arch)))


def findings(product: Product, mode: str, source: Source | None = None) -> str:
    """What the emulator reports of the code, or which element is wrong; "" if all is well, or the block is too large."""
    try:
        source = source or product.source()
    except Unsupported:
        return ""
    made = arguments.made(product.case)
    wanted = arguments.copies(made)
    interpreter.run(product.case.program, wanted)
    for report in emulate.run_all(source, made, product.case.dims, mode=mode):
        if not report.clean:
            return str(report)
    try:
        arguments.compare(product.case, made, wanted)
    except AssertionError as wrong:
        return str(wrong)
    return ""


def _tile(place: str, shape: tuple[int, int], dtype: str) -> tuple[Any, Any]:
    """A tile, and the part of it that takes part in the product."""
    rows, columns = shape
    match place:
        case "shared":
            tile = T.alloc_shared(shape, dtype)
            return tile, tile
        case "fragment":
            tile = T.alloc_fragment(shape, dtype)
            return tile, tile
        case "slot":
            tile = T.alloc_shared((2, *shape), dtype)
            return tile, tile[1, :, :]
        case "window":
            tile = T.alloc_shared((rows + 3, columns + 16), dtype)
            return tile, tile[3 : 3 + rows, 16 : 16 + columns]
        case _:
            tile = T.alloc_fragment((2 * rows, columns), dtype)
            return tile, tile[rows : 2 * rows, 0:columns]


def placed(
    extents: tuple[int, int, int],
    types: tuple[str, str, str],
    places: tuple[str, str, str],
    threads: int,
    *,
    transpose_a: bool,
    transpose_b: bool,
    clear: bool,
) -> Any:
    """One product, twice if its sums are cleared first: operands and sums in tiles of each kind, whole or in part."""
    (m, n, k), (operand, total, result) = extents, types
    shape_a, shape_b = (k, m) if transpose_a else (m, k), (n, k) if transpose_b else (k, n)
    turned = {"transpose_A": transpose_a, "transpose_B": transpose_b}

    @T.prim_func
    def main(A: T.Tensor(shape_a, operand), B: T.Tensor(shape_b, operand), C: T.Tensor((m, n), result)):
        with T.Kernel(1, threads=threads):
            _, a = _tile(places[0], shape_a, operand)
            _, b = _tile(places[1], shape_b, operand)
            whole, c = _tile(places[2], (m, n), total)
            T.copy(A, a)
            T.copy(B, b)
            if clear:
                T.gemm(a, b, c, clear_accum=True, **turned)
            else:
                T.clear(whole)
                T.gemm(a, b, c, **turned)
                T.gemm(a, b, c, **turned)
            T.copy(c, C)

    return main
