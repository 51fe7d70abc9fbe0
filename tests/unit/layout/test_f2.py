from __future__ import annotations

from brute import apply_bits
from hypothesis import given
from hypothesis import strategies as st

from tile_core.layout import f2
from tile_core.layout.f2 import BitMap

squares = st.integers(0, 6).flatmap(
    lambda n: st.builds(BitMap, st.tuples(*[st.integers(0, (1 << n) - 1)] * n), st.integers(0, (1 << n) - 1))
)
vectors = st.lists(st.integers(0, 255), max_size=7)


def span(vs: list[int]) -> set[int]:
    out = {0}
    for v in vs:
        out |= {x ^ v for x in out}
    return out


@given(vectors)
def test_rank_is_the_size_of_the_span(vs: list[int]) -> None:
    assert 1 << f2.rank(vs) == len(span(vs))


@given(vectors)
def test_kernel(vs: list[int]) -> None:
    zero = {x for x in range(1 << len(vs)) if f2.combine(vs, x) == 0}
    assert span(f2.kernel(vs)) == zero


@given(vectors, vectors)
def test_intersection_and_complement(a: list[int], b: list[int]) -> None:
    assert span(f2.intersection(a, b)) == span(a) & span(b)
    extra = f2.complement(a, b)
    assert span([*a, *extra]) == span([*a, *b]) and f2.rank([*a, *extra]) == f2.rank(a) + len(extra)


@given(squares, st.integers(0, 300))
def test_inverse_and_apply(m: BitMap, x: int) -> None:
    assert m(x) == apply_bits(m, x)
    image = {m(v) for v in range(m.window)}
    assert m.invertible() == (len(image) == m.window)
    if m.invertible():
        assert m.inverse()(m(x)) == x and m(m.inverse()(x)) == x


@given(squares, squares, st.integers(0, 300))
def test_composition(a: BitMap, b: BitMap, x: int) -> None:
    assert a.after(b)(x) == a(b(x))


@given(squares, st.integers(0, 7))
def test_trimming_keeps_values_in_reach(m: BitMap, bits: int) -> None:
    assert all(m.trimmed(bits)(x) == m(x) for x in range(1 << bits))


@given(squares, st.integers(0, 3))
def test_keeps_low(m: BitMap, bits: int) -> None:
    run = 1 << bits
    real = all(m(x + k) == m(x) + k for x in range(0, 128, run) for k in range(run)) and all(
        m(x) % run == 0 for x in range(0, 128, run)
    )
    assert m.keeps_low(bits) == real
