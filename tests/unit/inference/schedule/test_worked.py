"""The worked bodies: shortest interval, rings and tokens; and that they are safe, live, and as fast as they say."""

from __future__ import annotations

from collections import Counter

import bodies as b
import pytest
from making import schedule
from simulator import attack, steady_rate

from tile_core.inference.schedule.check import checked, faults
from tile_core.inference.schedule.model import Body, fits
from tile_core.inference.schedule.program import Schedule

CASES = [  # body, interval, rings of more than one slot, tokens by kind
    (b.gemm_hopper, 1024, {"A": 4, "B": 4}, {"signal": 3, "group": 2}),
    (b.gemm_together, 1024, {"A": 4, "B": 4}, {"signal": 2, "group": 1}),
    (b.attention_hopper, 2048, {"K": 3, "V": 3}, {"signal": 6, "group": 4}),
    (b.dequant_hopper, 512, None, {"signal": 6, "group": 2}),
    (b.chunk_scan_hopper, 836, None, {"signal": 8, "group": 2}),
    (b.gemm_ampere, 512, {"T": 3, "f1": 2}, {"barrier": 1, "group": 1, "interlock": 3}),
    (b.gemm_cdna3, 512, {"T": 3, "f": 2}, {"barrier": 1, "group": 1, "interlock": 2}),
    (b.gemm_plain, 2448, {}, {"barrier": 2}),
    (b.attention_blackwell, 2340, None, None),
    (b.persistent_hopper, 16384, {}, {"group": 4}),
    # 2048 would rescale the sums between two products that run together: the compiler would wait for the first
    (b.attention_together, 2152, None, {"barrier": 2, "signal": 4, "group": 2}),
]


def made(body: Body) -> Schedule:
    found = schedule(body)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("make", "interval", "rings", "tokens"), CASES, ids=lambda x: getattr(x, "__name__", "")
)
def test_cases(make, interval: int, rings: dict[str, int] | None, tokens: dict[str, int] | None) -> None:
    s = checked(made(make()))
    assert s.interval == interval
    assert fits(s.body, s.depth)
    if rings is not None:
        assert {n: d for n, d in s.depth.items() if d > 1} == rings
    if tokens is not None:
        assert Counter(t.kind for t in s.tokens.values()) == tokens
    assert attack(s) is None
    assert steady_rate(s) <= 1.01 * interval


VARIANTS = [  # softmax as slow as elsewhere; larger tiles; weights through shared memory
    (lambda: b.attention_hopper(slow=1.6), 2048),
    (lambda: b.attention_hopper(n=176), 2816),
    (lambda: b.attention_hopper(p="shared"), 2304),
]


@pytest.mark.parametrize(("make", "interval"), VARIANTS)
def test_variants_of_attention(make, interval: int) -> None:
    s = checked(made(make()))
    assert s.interval <= 1.03 * interval
    assert attack(s) is None


def test_the_same_on_every_run() -> None:
    first, second = made(b.attention_hopper()), made(b.attention_hopper())
    assert (first.streams, first.tokens, first.depth) == (second.streams, second.tokens, second.depth)


def test_release_of_a_gemm_comes_after_the_next_one_is_issued() -> None:
    s = made(b.gemm_together())
    assert [(x.op, x.stage) for x in s.streams["main"]] == [("mma", 0), ("mma.done", 1)]
    group, release = s.step("mma.done").waits[0], s.step("loadB").waits
    assert (s.tokens[group.token].kind, group.distance) == ("group", 1)
    assert [(s.tokens[w.token].producers, w.distance) for w in release] == [(("mma.done",), 4)]
    assert s.step("loadA").waits == ()


def test_rings_shrink_until_they_fit() -> None:
    body = b.gemm_together()
    tight = Body(**{**body.__dict__, "capacity": {"shared": 2 * 48 * b.KIB}})
    s = made(tight)
    assert s.depth["A"] == s.depth["B"] == 2
    assert s.interval > 1024
    assert not faults(s)
    assert attack(s) is None
