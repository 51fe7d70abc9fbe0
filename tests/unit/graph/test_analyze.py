"""Amounts against what is counted by hand."""

from __future__ import annotations

import handmade as h
import pytest

from tile_core.dtypes import INT32
from tile_core.expr import Space, Var, ceildiv, text
from tile_core.graph import build
from tile_core.graph.analyze import analyze


def test_gemm() -> None:
    facts = analyze(build(h.gemm(m=128, n=128, k=32, size=1024)))
    launch = facts.launches["launch0"]
    assert launch.blocks == 64 and launch.flops == 2 * 1024**3
    assert launch.bytes[Space.GLOBAL] == 2 * (2 * 1024 * 1024 * 8 + 1024 * 1024)
    assert launch.footprint == {Space.FRAGMENT: 128 * 128 * 4, Space.SHARED: 2 * 2 * 128 * 32}
    assert facts.nodes["gemm0"].times == 64 * 32 and facts.nodes["gemm0"].certain


def test_lives_and_peaks() -> None:
    launch = analyze(build(h.attention(m=128, n=176, d=128))).launches["launch0"]
    lives = {x.buffer.name: (x.first, x.last) for x in launch.lives}
    assert lives["Qs"] == (0, 16)  # read in every iteration
    assert lives["top"] == (3, 16) and lives["total"] == (2, 17) and lives["acc"] == (1, 18)
    assert lives["Ks"] == (4, 6) and lives["P"] == (14, 16)
    assert launch.footprint[Space.SHARED] == 122880
    assert launch.peak[Space.SHARED] == 32768 + 45056  # K is dead when V comes


def test_symbolic_extents() -> None:
    m = Var("M", INT32)
    b = h.Builder("rows")
    x, y = b.tensor("X", m, 64), b.tensor("Y", m, 64)
    (bx,) = b.blocks(ceildiv(m, 16))
    t = b.tile("t", 16, 64)
    b.copy(h.part(x, bx * 16, 0, size=(16, 64)), t)
    b.parallel((16, 64), lambda i, j: h.store(t, (i, j), h.at(t, i, j) * 2.0 + 1.0))
    b.copy(t, h.part(y, bx * 16, 0, size=(16, 64)))
    g = build(b.program())
    symbolic = analyze(g).launches["launch0"]
    assert text(symbolic.flops) == "int64((M + 15) // 16) * int64(2048)"
    known = analyze(g, {"M": 100}).launches["launch0"]
    assert (known.blocks, known.flops) == (7, 7 * 16 * 64 * 2)
    assert known.bytes[Space.GLOBAL] == 7 * 2 * 16 * 64 * 2


def test_open_program() -> None:
    facts = analyze(build(h.running_maximum()))
    assert facts.launches[""].blocks == 1 and facts.nodes["parallel0"].flops == 256


@pytest.mark.parametrize("make", [h.softmax, h.layer_norm, h.split_k, h.histogram, h.transpose])
def test_amounts_are_numbers_when_shapes_are(make) -> None:
    for node in analyze(build(make())).nodes.values():
        assert isinstance(node.flops, int) and all(isinstance(b, int) for b in node.bytes.values())
