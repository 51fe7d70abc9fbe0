"""Two teams of threads in a generated kernel: without one of the words, waits or fences between them it must not pass.

Barriers among the warps of one group are left out here: the emulator runs a product when all warps of its group have come to it,
so it cannot see one that begins before another warp has written its part.
"""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from mutations import mutants

sys.path.insert(0, str(Path(__file__).parents[3] / "examples"))

import mla_decode

from tile_backend_cuda.backend import CudaBackend
from tile_backend_cuda.prelude.emulate import CudaEmulator
from tile_backend_cuda.prelude.table import MARK
from tile_core.backend import Source
from tile_core.hardware import Target
from tile_core.runtime.pipeline import make_plan

SIZES = {"max_kv": 100, "dim": 64, "rope": 16, "block_N": 16}
KINDS = {
    "in turn": {"splits": 2},
    "lent": {"max_kv": 300, "rope": 64, "block_N": 64},  # what is left of a tile is as large as the weights
    "in front": {"tiles": 1},
}
BETWEEN = re.compile(r"mbarrier_(wait|arrive|init)|fence_|named_sync\(15")


@cache
def made(kind: str) -> Source:
    info = CudaBackend().info(Target("cuda", "sm_90a"))
    kernel = mla_decode.decode(1, 64, **{**SIZES, **KINDS[kind]})
    return CudaBackend().codegen(info).emit(make_plan(kernel.program, info))


def caught(kind: str, source: Source, mode: str) -> bool:
    sizes = {**SIZES, **KINDS[kind]}
    length, width = sizes["max_kv"], sizes["dim"] + sizes["rope"]
    rng = np.random.default_rng(0)
    # scores that grow, so that sums have to be multiplied
    q, kv = rng.standard_normal((1, 64, width)) * 8, rng.standard_normal((1, length, width))
    given = q.astype(np.float16), (kv * np.linspace(0.2, 1, length)[:, None]).astype(np.float16)
    lengths = np.array([length], np.int32)
    want = mla_decode.reference(*given, lengths, dim=64)
    got = np.full(want.shape, np.nan, np.float16)
    reports = list(CudaEmulator().run(source, [*given, lengths, got], {}, mode=mode))
    return not all(r.clean for r in reports) or not np.abs(got - want).max() < 1e-2


def broken() -> list:
    out = []
    for kind in KINDS:
        prelude, _, kernel = made(kind).text.partition(MARK)
        first = kernel.find(
            'extern "C"', kernel.find('extern "C"') + 1
        )  # of two launches the first has two teams
        for what, text in mutants(kernel[:first] if first > 0 else kernel):
            rest = kernel[first:] if first > 0 else ""
            if BETWEEN.match(what):
                out.append(
                    pytest.param(kind, prelude + MARK + text + rest, id=f"{kind}: {what[:70]} {what[-9:]}")
                )
    return out


@pytest.mark.parametrize(("kind", "text"), broken())
def test_caught(kind: str, text: str, emulator: None) -> None:
    source = replace(made(kind), text=text)
    assert any(caught(kind, source, mode) for mode in ("late", "early", "random"))


@pytest.mark.parametrize("kind", KINDS)
def test_the_kernels_themselves(kind: str, emulator: None) -> None:
    assert not any(caught(kind, made(kind), mode) for mode in ("late", "early", "random"))


def test_there_are_enough() -> None:
    assert len(broken()) >= 140
