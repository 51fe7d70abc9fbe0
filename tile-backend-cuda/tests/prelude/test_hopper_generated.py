"""Hopper's path through the compiler: TMA copies that run ahead, wgmma, box stores, clusters; emulated, against numpy."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from mutations import mutants, weakened
from products import Product, compiled, faults

from tile_core.backend import Source

BASIC = [
    Product(256, 256, 128, (128, 128, 64), "bfloat16", out="bfloat16"),
    Product(256, 256, 128, (128, 128, 64), b_t=False),
    Product(256, 256, 128, (128, 128, 64), a_t=True, b_t=False),
    Product(256, 256, 128, (128, 128, 64), a_t=True),
    Product(256, 256, 192, (128, 256, 64), a_t=True, b_t=False),
    Product(256, 256, 256, (128, 128, 128), "float8_e4m3fn", out="bfloat16"),
    Product(256, 128, 256, (128, 64, 64), "float8_e5m2", out="float32"),
    Product(256, 256, 128, (128, 128, 32), "float32", out="float32"),
    Product(256, 256, 256, (128, 128, 128), "int8", "int32", "int32"),
    Product(256, 256, 128, (128, 128, 64), "float16", "float16"),
    Product(256, 128, 192, (64, 128, 64), threads=128),
    Product(128, 192, 192, (128, 192, 64), threads=128),
    Product(128, 256, 128, (64, 128, 32), b_t=False),
    Product(384, 128, 128, (192, 128, 64), threads=384),
    Product(512, 512, 128, (128, 128, 64), stages=4),
]
RAGGED = [
    Product(300, 520, 264, (128, 256, 64), "bfloat16", out="bfloat16"),
    Product(1, 8, 8, (64, 8, 64), threads=128),
    Product(130, 24, 40, (128, 16, 64), threads=128),
    Product(200, 136, 72, (128, 64, 64), a_t=True, b_t=False),
    Product(65, 72, 33 * 8, (64, 72, 64), out="float32", threads=128),
    # the second group begins at column 48: panels of 16 columns, since 32 do not divide it
    Product(24, 92, 240, (64, 96, 64), a_t=True, b_t=False),
]
SYMBOLIC = [
    Product(300, 264, 200, (128, 128, 64), symbolic=True),
    Product(
        70, 67, 67, (64, 64, 64), threads=128, symbolic=True
    ),  # strides that no TMA takes: the general kernel runs
]


@pytest.mark.parametrize("p", [*BASIC, *RAGGED, *SYMBOLIC], ids=str)
@pytest.mark.parametrize("mode", ["late", "random"])
def test_product(p: Product, mode: str, emulator: None):
    _, source = compiled(p)
    assert "tma_load_2d" in source.text and "wgmma_m64" in source.text
    assert faults(p, source, mode) == ""


@pytest.mark.parametrize("p", BASIC, ids=str)
def test_results_leave_by_boxes(p: Product):
    """The accumulator of every group of whole rows is staged and stored by TMA."""
    plan, source = compiled(p)
    (choice,) = plan.atoms.values()
    whole = choice.warps[1] == 1
    assert ("tma_store_2d" in source.text) == whole


def test_pairs_share_copies(emulator: None):
    """Narrow tiles are bound by what they fetch: two neighbours fetch half of their common rows each."""
    p = Product(512, 512, 192, (128, 64, 64), "bfloat16", out="bfloat16", cores=4)
    _, source = compiled(p)
    assert "tma_load_2d_multicast" in source.text and source.launch.extra["cluster"]
    for mode in ("late", "early", "random"):
        assert faults(p, source, mode) == ""


def test_a_loop_whose_products_are_not_the_engine_s(emulator: None):
    """Its accumulator is set to zero by the threads, where it stands in the program."""
    p = Product(
        70, 64, 72, (64, 64, 32), "float64", "float64", "float64", b_t=True, threads=128, symbolic=True
    )
    _, source = compiled(p)
    assert "tma_load_2d" in source.text and faults(p, source, "late") == ""


@pytest.mark.parametrize("m", [1, 128])
def test_no_iteration(m: int, emulator: None):
    p = Product(m, 64, 0, (64, 64, 64), threads=128, symbolic=True)
    _, source = compiled(p)
    assert faults(p, source, "late") == ""


@settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.data())
def test_any_shape(emulator: None, data: st.DataObject):
    """Rows that TMA takes and rows that it does not, one to many tiles, one to many iterations."""
    step = data.draw(st.sampled_from([8, 8, 1]))
    m, n, k = (data.draw(st.integers(1, 40)) * step for _ in range(3))
    threads = data.draw(st.sampled_from([128, 256]))
    block = (threads // 2, data.draw(st.sampled_from([16, 64, 104])), data.draw(st.sampled_from([32, 64])))
    p = Product(
        m, n, k, block,
        data.draw(st.sampled_from(["float16", "bfloat16"])),
        out=data.draw(st.sampled_from(["float16", "float32"])),
        a_t=data.draw(st.booleans()), b_t=data.draw(st.booleans()),
        stages=data.draw(st.integers(1, 4)), threads=threads, symbolic=data.draw(st.booleans()),
    )  # fmt: skip
    note(str(p))
    _, source = compiled(p)
    assert faults(p, source, "random", seed=data.draw(st.integers(0, 99))) == ""


ALONE = Product(512, 256, 320, (128, 256, 64), stages=2, cores=2)
PAIRS = Product(512, 128, 320, (128, 64, 64), stages=2, cores=2)


def broken() -> list:
    """Every wait, fence, barrier, arrival and commit of the generated kernel left out once, every group wait weakened."""
    out: list = []
    for p in (ALONE, PAIRS):
        _, source = compiled(p)
        head, kernel = source.text.split('extern "C"', 1)
        for what, text in (*mutants(kernel), *weakened(kernel)):
            out.append(pytest.param(p, source, head + 'extern "C"' + text, id=f"{p.tile[1]}: {what}"))
    return out


@pytest.mark.parametrize(("p", "source", "text"), broken())
def test_mutant_is_caught(p: Product, source: Source, text: str, emulator: None):
    changed = Source(text, source.language, source.suffix, source.launch)
    tries = (("late", 0), ("early", 0), *(("random", seed) for seed in range(6)))
    assert any(faults(p, changed, mode, seed) for mode, seed in tries), "nothing noticed it"


def test_sass_of_the_gemm():
    """The instructions that make the speed, no spills, nothing that the assembler had to serialise."""
    from tile_backend_cuda.backend import CudaBackend
    from tile_backend_cuda.compiler import disassembler

    p = Product(4096, 4096, 4096, (128, 256, 64), "bfloat16", out="bfloat16", stages=4, cores=132)
    plan, source = compiled(p)
    artifact = CudaBackend().compiler(plan.info).compile(source, {})
    assert artifact.findings == ()
    assert (
        artifact.resources["spill_stores"]
        == artifact.resources["spill_loads"]
        == artifact.resources["stack"]
        == 0
    )
    sass = disassembler.disassemble(artifact.data)
    counts = {
        name: len(re.findall(rf"\b{name}\b", sass)) for name in ("HGMMA", "UTMALDG", "UTMASTG", "USETMAXREG")
    }
    assert all(counts.values()), counts
    assert not re.search(r"\b(LDL|STL)\b", sass)
    assert np.all([n > 0 for n in counts.values()])
