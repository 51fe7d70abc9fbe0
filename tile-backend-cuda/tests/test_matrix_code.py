"""Machine code of generated products: the matrix instructions of each type, matrix loads, asynchronous copies, no spills."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

from tile_backend_cuda.backend import CudaBackend
from tile_core.hardware import Target
from tile_core.testing.kernels import gemm

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

import attention_variants
import flash_attention
import mla_decode
import mla_prefill

HALF = ("float16", "float32", "float32")
LOCAL = {"LDL", "STL"}  # a thread's memory: registers were spilled or indexed by a variable


def machine_code(arch: str, types: tuple[str, str, str], block: tuple[int, int, int], **how: Any) -> set[str]:
    """The names of all instructions of a product."""
    from tile_core.runtime.pipeline import make_plan

    backend = CudaBackend()
    info = backend.info(Target("cuda", arch))
    program = gemm(512, 512, 512, block, types, **how).program
    source = backend.codegen(info).emit(make_plan(program, info))
    compiler = backend.compiler(info)
    text = compiler.disassemble(source, compiler.compile(source, {}))
    found = re.findall(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\d+ )?([A-Z][A-Z0-9_.]*)", text, re.M)
    return {part for name in found for part in (name, name.partition(".")[0])}


@pytest.mark.parametrize("arch", ["sm_80", "sm_86", "sm_89"])
@pytest.mark.parametrize("stages", [2, 3, 4])
def test_ampere(arch: str, stages: int) -> None:
    code = machine_code(arch, HALF, (128, 128, 32), stages=stages)
    assert code >= {"HMMA.16816.F32", "LDSM", "LDGSTS", "LDGDEPBAR", "DEPBAR"}
    assert not code & LOCAL
    assert not code & {"STS", "LDS"}  # operands pass by registers only as matrices


def test_turing() -> None:
    code = machine_code("sm_75", HALF, (128, 128, 32), threads=256)
    assert code >= {"HMMA.1688.F32", "LDSM"} and not code & LOCAL


@pytest.mark.parametrize(
    ("types", "wanted"),
    [
        (HALF, "UTCHMMA"),
        (("float32", "float32", "float32"), "UTCHMMA"),
        (("float8_e4m3fn", "float32", "float32"), "UTCQMMA"),
        (("int8", "int32", "int32"), "UTCIMMA"),
    ],
)
def test_blackwell(types: tuple[str, str, str], wanted: str) -> None:
    """Products in tensor memory, whose end is told by a barrier; copies of boxes in and out."""
    code = machine_code("sm_100a", types, (128, 128, 32), transpose_b=True, stages=3)
    assert code >= {wanted, "UTCBAR", "LDTM", "UTMALDG", "UTMASTG"} and not code & (LOCAL | {"HMMA", "IMMA"})


@pytest.mark.parametrize(
    ("arch", "types", "wanted"),
    [
        ("sm_80", ("bfloat16", "float32", "float32"), "HMMA.16816.F32.BF16"),
        ("sm_80", ("float16", "float16", "float16"), "HMMA.16816.F16"),
        ("sm_80", ("float32", "float32", "float32"), "HMMA.1688.F32.TF32"),
        ("sm_80", ("int8", "int32", "int32"), "IMMA.16832.S8.S8"),
        ("sm_80", ("float64", "float64", "float64"), "DMMA.884"),
        ("sm_89", ("float8_e4m3fn", "float32", "float32"), "QMMA.16832.F32.E4M3.E4M3"),
        ("sm_90a", HALF, "HMMA.16816.F32"),
        ("sm_120a", HALF, "HMMA.16816.F32"),
    ],
)
def test_types(arch: str, types: tuple[str, str, str], wanted: str) -> None:
    # 32 rows are too few for the instructions of four warps
    code = machine_code(arch, types, (32, 64, 32), transpose_b=True)
    assert wanted in code and not code & LOCAL


# head dimension, rows of Q and of K in a block, threads, causal: what attention is run with
ATTENTION = (
    *((*sizes, causal) for causal in (False, True) for sizes in (
        (64, 128, 128, 256),
        (64, 192, 112, 384),
        (96, 128, 128, 256),
        (128, 128, 128, 256),
        (128, 128, 160, 256),
        (128, 128, 176, 256),
        (256, 128, 64, 256),
        (256, 128, 80, 256),
    )),
    (64, 192, 128, 384, False),
)  # fmt: skip


@pytest.mark.parametrize(("dim", "rows", "keys", "threads", "causal"), ATTENTION)
def test_attention_overlaps(dim: int, rows: int, keys: int, threads: int, causal: bool):
    """ptxas neither serialises the products (C75xx) nor spills; softmax runs while one group is at work, without a barrier.

    Where there are three groups of threads, each meets the one before it, which does not wait.
    """
    kernel = flash_attention.attention(
        1, 16, 4096, 4096, dim, causal=causal, block_M=rows, block_N=keys, threads=threads
    ).for_target(Target("cuda", "sm_90a"))
    artifact = kernel.entry.artifact
    assert artifact.findings == ()
    assert artifact.resources["spill_stores"] == 0
    loop = re.search(r"^( *)for \(int k = [12];.*?^\1}", kernel.source.text, re.M | re.S)
    assert loop is not None
    assert loop[0].count("wgmma_wait<1>") == loop[0].count("wgmma_wait<0>") == 1
    assert re.findall(r"named_sync\((.*), (\d+)\)", loop[0]) == ([("group + 5", "256")] if rows > 128 else [])


BLOCKS = {"block_M": 128, "block_N": 128, "threads": 256}
KINDS = {
    "window and sink": lambda: attention_variants.attention(
        1, 16, 4096, 4096, 128, groups=4, causal=True, window=1024, sink=True, **BLOCKS
    ),
    "mla decode": lambda: mla_decode.decode(64, 128, 8192),
    "mla decode, paged": lambda: mla_decode.decode(64, 128, 8192, page=64, splits=2),
    "mla prefill": lambda: mla_prefill.prefill(1, 16, 4096, 4096, **BLOCKS),
}


@pytest.mark.parametrize("kind", KINDS)
def test_other_attention(kind: str):
    artifact = KINDS[kind]().for_target(Target("cuda", "sm_90a")).entry.artifact
    assert artifact.findings == ()
    assert artifact.resources["spill_stores"] == 0
