"""GEMMs as the tests want them: sizes and architecture in; plan, source, artifact and instructions out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from tile_backend_rocm.backend import RocmBackend
from tile_core.backend import Artifact, Source
from tile_core.hardware import Target, TargetInfo
from tile_core.inference.plan import TilePlan
from tile_core.testing import stages
from tile_core.testing.kernels import Case, gemm

BACKEND = RocmBackend()


def info_of(arch: str) -> TargetInfo:
    return BACKEND.info(Target("rocm", arch))


@dataclass(frozen=True)
class Product:
    """A GEMM, 4096 each way. ``transposed``: B is stored as (n, k). ``clang``: a program; "": the newest."""

    arch: str
    transposed: bool = True
    block: tuple[int, int, int] = (128, 128, 32)
    threads: int = 256
    stages: int = 3
    dtype: str = "float16"
    clang: str = ""

    @property
    def case(self) -> Case:
        total = "int32" if self.dtype == "int8" else "float32"
        types = (self.dtype, total, self.dtype if self.dtype.endswith("float16") else total)
        more = {"transpose_b": self.transposed, "threads": self.threads, "stages": self.stages}
        return Case(
            "product", lambda: gemm(4096, 4096, 4096, self.block, types, **more), frozenset((self.dtype,))
        )

    def __str__(self) -> str:
        form = "nt" if self.transposed else "nn"
        return f"{self.arch}-{self.dtype}-{form}-{self.stages} stages{self.clang and '-'}{self.clang}"


@lru_cache(maxsize=32)
def planned(product: Product) -> TilePlan:
    return stages.plan(product.case.make().program, BACKEND, info_of(product.arch))


@lru_cache(maxsize=32)
def emitted(product: Product) -> Source:
    return BACKEND.codegen(info_of(product.arch)).emit(planned(product))


@lru_cache(maxsize=32)
def compiled(product: Product) -> Artifact:
    return BACKEND.compiler(info_of(product.arch)).compile(
        emitted(product), {"clang": product.clang} if product.clang else {}
    )


@lru_cache(maxsize=32)
def instructions(product: Product) -> tuple[str, ...]:
    """One instruction a line, operands included."""
    from tile_backend_rocm.compiler import RocmCompiler

    text = RocmCompiler(info_of(product.arch)).disassemble(emitted(product), compiled(product))
    return tuple(line.strip() for line in text.splitlines() if line.startswith("\t"))


def inner_loop(listing: tuple[str, ...]) -> list[str]:
    """From the barrier in front of the first matrix instruction to the branch behind it."""
    first = next(n for n, x in enumerate(listing) if x.startswith(("v_mfma", "v_wmma")))
    begin = max(n for n in range(first) if listing[n].startswith("s_barrier"))
    end = next(n for n in range(first, len(listing)) if listing[n].startswith("s_cbranch"))
    # the wait stands before the barrier
    return list(listing[begin - 4 : end + 1])
