"""Launches that are divided between two teams of threads: how, when not, and that they mean what they meant before."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

import flash_attention
import mla_decode

import tile_core.language as T
from tile_backend_cuda.backend import CudaBackend
from tile_core.expr import Space
from tile_core.hardware import Target
from tile_core.inference.division import divided
from tile_core.inference.infer import infer
from tile_core.inference.teams import FRONT, OWN, Teams
from tile_core.interpreter import run
from tile_core.program import Alloc, Copy, For, Gemm
from tile_core.program.visit import statements

HOPPER = CudaBackend().info(Target("cuda", "sm_90a"))
SIZES = {"dim": 64, "rope": 16, "block_N": 16}


def launch(kernel):
    return divided(kernel.program, HOPPER).launches[0]


def test_in_turn():
    """Each team has its own scores and half of the sums; half a tile of keys is free when its team has read it."""
    found = launch(mla_decode.decode(2, 64, 256))
    teams = Teams.of(found)
    assert teams is not None and found.thread_count == 128 and teams.threads(frozenset({OWN, FRONT})) == 256
    loop = next(s for s in found.body if isinstance(s, For))
    products = [s for s in loop.body if isinstance(s, Gemm)]
    assert [s.c.buffer.shape for s in products].count((64, 256)) == 4
    assert {len(teams.of_statement(s)) for s in products} == {1}
    panels = {b.buffer.name for b in found.body if isinstance(b, Alloc) and b.buffer.shape == (64, 256)}
    assert {"shared_main", "shared_front"} <= panels
    told = {b.name for b in teams.handed_over}
    assert told == {
        "weights", "top_to_front", "top_to_main", "rescale_to_front", "rescale_to_main",
        "total_to_main", "rescale_to_front", "shared_rest",
    } | ({"total_to_front"} & told)  # fmt: skip


def test_lent():
    """The second team's weights lie in what is left of its own tile of keys, which its products read last."""
    found = launch(mla_decode.decode(2, 64, 256))
    teams = Teams.of(found)
    loop = next(s for s in found.body if isinstance(s, For))
    into = {
        s.dst.buffer: s for s in loop.body if isinstance(s, Copy) and s.src.buffer.space is Space.FRAGMENT
    }
    (weights,) = [b for b in into if b.name == "weights"]
    (rest,) = [b for b in into if b.name == "shared_rest"]
    assert teams is not None
    assert teams.of_statement(into[weights]) == {OWN} and teams.of_statement(into[rest]) == {FRONT}
    products = [s for s in loop.body if isinstance(s, Gemm)]
    assert [s.a.buffer for s in products if s.c.buffer.shape == (64, 256)] == [weights, weights, rest, rest]
    firsts = [s for s in products if teams.of_statement(s) == {FRONT} and s.c.buffer.shape == (64, 64)]
    assert [s.clear for s in firsts] == [True, False, False] and firsts[-1].b.buffer is rest
    filled = [s.dst.buffer for s in loop.body if isinstance(s, Copy) and s.src.buffer.space is Space.GLOBAL]
    assert filled.count(rest) == 1


def test_nothing_to_lend():
    """What is left of a tile has another size than the weights."""
    found = launch(mla_decode.decode(2, 64, 256, rope=32))
    loop = next(s for s in found.body if isinstance(s, For))
    written = [
        s.dst.buffer for s in loop.body if isinstance(s, Copy) and s.src.buffer.space is Space.FRAGMENT
    ]
    assert [b.name for b in written].count("weights") == 2


def test_in_front():
    """One first product in a step: a team of its own does it."""
    found = launch(mla_decode.decode(2, 64, 256, tiles=1))
    assert found.thread_count == 256 and found.front is not None and found.front.threads == 128
    assert any(b.shape == (64, 512) for b in found.front.own)


@pytest.mark.parametrize("kernel", [
    flash_attention.attention(1, 2, 128, 128, 64, block_M=128, threads=256),  # rows for two groups
    flash_attention.attention(1, 2, 128, 128, 64),  # one group
    mla_decode.decode(2, 64, 256, block_H=32),  # no instruction has so few rows
])  # fmt: skip
def test_not_divided(kernel):
    assert divided(kernel.program, HOPPER) is kernel.program


def sums_of_neighbours():
    """The accumulator's columns are mixed, so nobody can have half of them."""

    @T.prim_func
    def kernel(
        Q: T.Tensor((64, 64), "float16"), K: T.Tensor((256, 64), "float16"), O: T.Tensor((64, 64), "float32")
    ):
        with T.Kernel(1, threads=256):
            q, p = (T.alloc_shared((64, 64), "float16") for _ in range(2))
            k = [T.alloc_shared((64, 64), "float16") for _ in range(2)]
            s = [T.alloc_fragment((64, 64), "float32") for _ in range(2)]
            acc = T.alloc_fragment((64, 64), "float32")
            T.copy(Q, q)
            T.fill(acc, 0)
            for n in T.Pipelined(2, num_stages=1):
                for m in [*range(2)]:
                    T.copy(K[(2 * n + m) * 64 : (2 * n + m + 1) * 64, :], k[m])
                    T.gemm(q, k[m], s[m], transpose_B=True, clear_accum=True)
                for m in [*range(2)]:
                    T.copy(s[m], p)
                    T.gemm(p, k[m], acc)
            for i, j in T.Parallel(64, 64):
                acc[i, j] = acc[i, j] + acc[i, 63 - j]
            T.copy(acc, O)

    return kernel


def test_inseparable():
    program = sums_of_neighbours().program
    assert divided(program, HOPPER) is program


@settings(max_examples=12, deadline=None)
@given(
    lengths=st.lists(st.integers(0, 70), min_size=1, max_size=3),
    tiles=st.sampled_from((1, 2, 4)),
    splits=st.sampled_from((1, 2)),
    seed=st.integers(0, 99),
)
def test_meaning(lengths, tiles, splits, seed):
    """The interpreter finds the same result for the program as written and divided; a second team changes no value."""
    rng, batch = np.random.default_rng(seed), len(lengths)
    kernel = mla_decode.decode(batch, 64, 70, splits=splits, tiles=tiles, **SIZES)
    new = divided(kernel.program, HOPPER)
    assert new.launches[0].front is not None
    q, kv = (rng.standard_normal((batch, n, 80)).astype(np.float16) for n in (64, 70))
    given_ = q, kv, np.array(lengths, np.int32)
    want = mla_decode.reference(*given_, dim=64)
    got = np.full(want.shape, np.nan, np.float16)
    run(new, (*given_, got))
    np.testing.assert_allclose(got, want, atol=4e-3)


def test_plans_of_both_teams():
    """Each team's fragments lie in its own threads, and tiles that both touch lie alike."""
    plan = infer(mla_decode.decode(2, 64, 256).program, HOPPER)
    assert set(plan.schedules["for0"].streams) == {OWN, FRONT, "copy"}
    fragments = [layout for b, layout in plan.layouts.items() if b.space is Space.FRAGMENT]
    assert fragments and not plan.moves
    assert all(
        not isinstance(s, Gemm) or plan.graph.names[id(s)] in plan.engines
        for s in statements(plan.program.body)
    )


def test_absent_parameter():
    """A parameter whose annotation is None is not there: the kernel sees None."""

    def kernel(with_bias):
        @T.prim_func
        def k(
            A: T.Tensor((4,), "float32"),
            bias: T.Tensor((4,), "float32") if with_bias else None,
            B: T.Tensor((4,), "float32"),
        ):
            with T.Kernel(1, threads=32):
                for i in T.Parallel(4):
                    B[i] = A[i] if bias is None else A[i] + bias[i]

        return k

    assert [p.name for p in kernel(False).program.params] == ["A", "B"]
    a = np.arange(4, dtype=np.float32)
    for given_ in ((a,), (a, a)):
        out = np.zeros(4, np.float32)
        run(kernel(len(given_) > 1).program, (*given_, out))
        assert (out == sum(given_)).all()
