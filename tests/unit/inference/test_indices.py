"""Index expressions as digits, against evaluation at every iteration."""

from __future__ import annotations

from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from replay import value

from tile_core.dtypes import INT32
from tile_core.expr import Expr, Var, binary, const
from tile_core.inference.indices import divisor, place
from tile_core.inference.maps import Digit, Index, pulled
from tile_core.layout.panels import row_major

I, J, N = (Var(n, INT32, k) for k, n in enumerate("ijn"))
LOOPS = {I: Index((Digit(0, 1, 6, 1),)), J: Index((Digit(1, 1, 4, 2),), 1)}

leaves = st.one_of(st.sampled_from([I, J]), st.integers(0, 9).map(const), st.just(N * 12))
trees = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(binary, st.just("+"), inner, inner),
        st.builds(binary, st.sampled_from(["*", "//", "%"]), inner, st.integers(1, 12).map(const)),
        st.builds(binary, st.just("-"), inner, st.integers(0, 5).map(const)),
    ),
    max_leaves=6,
)


def read(index: Index, at: tuple[int, ...]) -> int:
    return index.constant + sum(at[d.loop] // d.low % d.extent * d.stride for d in index.digits)


@settings(max_examples=400)
@given(trees, st.integers(0, 5))
def test_digits_are_the_expression(x: Expr, n: int) -> None:
    found = place(x, LOOPS)
    if found.index.opaque:
        return
    seen = set()
    for i, j in product(range(6), range(4)):
        at = {I: np.array([i]), J: np.array([1 + 2 * j]), N: np.array([n])}
        seen.add(int(value(x, at, 1)[0]) - read(found.index, (i, j)))
    assert len(seen) == 1  # what no loop changes
    (rest,) = seen
    assert rest == 0 if found.align == 0 else rest % found.align == 0


def test_the_usual_forms() -> None:
    def digits(x: Expr) -> Index:
        return place(x, {I: Index((Digit(0, 1, 8, 1),)), J: Index((Digit(1, 1, 32, 1),))}).index

    assert digits(I + 3) == Index((Digit(0, 1, 8, 1),), 3)
    assert digits(J // 4) == Index((Digit(1, 4, 8, 1),))
    assert digits(J % 4) == Index((Digit(1, 1, 4, 1, last=False),))
    assert digits(I * 32 + J) == Index((Digit(0, 1, 8, 32), Digit(1, 1, 32, 1)))
    assert (
        digits(J >> 2) == digits(J // 4)
        and digits(J & 3) == digits(J % 4)
        and digits(J << 1) == digits(J * 2)
    )
    assert digits(J % 6 // 3) == Index((Digit(1, 3, 2, 1, last=False),)) and digits(J % 6 // 4).opaque
    assert digits((I + 1) % 8).opaque and digits(I * J).opaque and digits(31 - J).opaque
    assert (
        divisor(N * 12 + 18) == 6 and divisor(N) == 1 and divisor(24) == 24 and divisor(N * 4 * (N * 3)) == 12
    )


def test_a_digit_in_two_dimensions_is_no_partition() -> None:
    """The diagonal ``A[i, i]``, or a block's, ``A[i // 4 * 4, i]``."""
    i, block = Index((Digit(0, 1, 64, 1),)), Index((Digit(0, 4, 16, 4),))
    low = Index((Digit(0, 1, 4, 1, last=False), Digit(0, 4, 16, 4)))
    tile = row_major((64, 64))
    assert pulled(tile, (i, i), (64,)) is None
    assert pulled(tile, (block, low), (64,)) is None
    assert pulled(tile, (Index(), i), (64,)) is not None
