from __future__ import annotations

from itertools import product

import pytest
from brute import orderly
from hypothesis import given
from hypothesis import strategies as st

import tile_backend_cuda.atoms as atoms
from tile_core.layout import algebra as alg
from tile_core.layout import panels
from tile_core.layout.access import (
    Form,
    Pattern,
    byte_map,
    conflicts,
    counted,
    matrix_form,
    pattern,
    vector_width,
    wavefronts,
)
from tile_core.layout.f2 import BitMap, rank, xor_swizzle
from tile_core.layout.layout import Axis, Iter, Layout, injective
from tile_core.layout.swizzle import choose, legal_spans, synthesise

T, R = Axis.THREAD, Axis.REGISTER


@st.composite
def linear(draw: st.DrawFn) -> Pattern:
    """Lane bits on distinct address bits, some of them on none (lanes that read the same)."""
    width = draw(st.sampled_from([2, 4, 8, 16]))
    low = width.bit_length() - 1
    bits = draw(st.lists(st.integers(low, 12), min_size=5, max_size=5, unique=True))
    zero = draw(st.sets(st.integers(0, 4), max_size=2))
    return Pattern("any", width, 1, tuple(0 if k in zero else 1 << b for k, b in enumerate(bits)))


swizzles = st.builds(xor_swizzle, st.integers(1, 3), st.just(4), st.integers(3, 5))


@given(linear(), swizzles, st.integers(0, 40))
def test_rank_counts_conflicts(p: Pattern, s: BitMap, base: int) -> None:
    assert wavefronts(p, s) == counted(p, s)
    start = base << 13  # adding it does not carry: conflicts depend on the lanes alone
    assert counted(p, s, start) == counted(p, s)


@given(st.lists(linear(), min_size=1, max_size=3))
def test_synthesised_swizzles_have_no_conflicts(ps: list[Pattern]) -> None:
    found = synthesise(ps, 13)
    low = max(p.width.bit_length() - 1 for p in ps)
    if found is None:
        return
    assert found.invertible() and found.keeps_low(max(2, low))
    for p in ps:
        here = p.columns[: p.phase]
        lanes = dict.fromkeys(range(1 << len(here)), 0)
        for x in lanes:
            for k, c in enumerate(here):
                lanes[x] ^= c if x >> k & 1 else 0
        words = {a >> max(2, p.width.bit_length() - 1) for a in lanes.values()}
        banks = {(found(a) & 127) >> max(2, p.width.bit_length() - 1) for a in lanes.values()}
        assert len(words) == len(banks)


@given(linear())
def test_synthesis_finds_one_if_there_is_one_for_a_single_access(p: Pattern) -> None:
    """Alone, an access is solvable unless its own chunk bits are fewer than its lanes need."""
    here = p.columns[: p.phase]
    low = max(2, p.width.bit_length() - 1)
    if rank(c >> low for c in here) <= 7 - low and synthesise([p], 13) is None:
        raise AssertionError("a conflict-free swizzle exists: map the surplus rows onto the free chunk bits")


def reader(shape: tuple[int, int], atom: Layout, warps: int) -> Layout:
    rows, columns = shape[0] // atom.shape[0], shape[1] // atom.shape[1]
    out = alg.product(
        Layout((rows, columns), (Iter(warps, 1, T), Iter(rows // warps, columns, R), Iter(columns, 1, R))),
        atom,
    )
    assert out is not None
    return out


def test_mma_operand_from_shared() -> None:
    a = reader((64, 64), atoms.M16N8K16_A, 4)
    for tile, ways in (
        (panels.row_major((64, 64)), 8),
        (panels.span_tile((64, 64), 128, 16), 1),
        (panels.row_major((64, 64), 72), 1),
    ):
        found = alg.access(a, tile, 128)
        assert found is not None and matrix_form(found, 16) is Form.LDMATRIX
        p = pattern("a", found, 16)
        assert wavefronts(p, byte_map(tile.swizzle, 16)) == 4 * ways == counted(p, byte_map(tile.swizzle, 16))
    b = alg.permute(reader((64, 64), alg.permute(atoms.M16N8K16_B, (1, 0)) or a, 4), (1, 0))
    assert b is not None
    found = alg.access(b, panels.span_tile((64, 64), 128, 16), 128)
    assert found is not None and matrix_form(found, 16) is Form.LDMATRIX_TRANS
    assert conflicts([pattern("b", found, 16)], byte_map(panels.span_swizzle(128, 16), 16)) == 0


def every_warp_is_clean(fragment: Layout, tile: Layout, bits: int, threads: int) -> bool:
    """By enumeration, vector access of each warp, each register group: is any bank hit twice?"""
    found = alg.access(fragment, tile, threads)
    assert found is not None
    width = vector_width(found, bits)
    per = min(5, 7 - max(2, (width * bits // 8).bit_length() - 1))
    for register in range(0, found.shape[1], width):
        for first in range(0, threads, 1 << per):
            words: dict[int, set[int]] = {}
            for t in range(first, first + (1 << per)):
                start = found.place((t, register)).get(Axis.MEMORY, 0) * bits // 8
                for w in range(start // 4, (start + width * bits // 8 + 3) // 4):
                    words.setdefault(w % 32, set()).add(w)
            if any(len(w) > 1 for w in words.values()):
                return False
    return True


def test_the_textbook_transpose() -> None:
    """Write 16x32 fp32 by rows, read it by columns: XOR with the row is 2-way conflicted, with twice the row it is not."""
    write = Layout((16, 32), (Iter(16, 1, R), Iter(32, 1, T)))
    read = Layout((16, 32), (Iter(16, 1, T), Iter(16, 1, R), Iter(2, 16, T)))

    def of(tile: Layout) -> list[Pattern]:
        return [
            pattern("w", alg.access(write, tile, 32) or tile, 32),
            pattern("r", alg.access(read, tile, 32) or tile, 32),
        ]

    found = choose((16, 32), 32, of)
    assert found.conflicts == 0 and injective(found.layout)
    assert every_warp_is_clean(write, found.layout, 32, 32) and every_warp_is_clean(
        read, found.layout, 32, 32
    )
    once = panels.row_major((16, 32)).with_swizzle(xor_swizzle(4, 0, 5))
    assert conflicts(of(once), byte_map(once.swizzle, 32)) > 0


@pytest.mark.parametrize("columns", [16, 48, 64, 104, 128, 176])
def test_ldmatrix_tiles_of_any_width(columns: int) -> None:
    shape = (64, columns)
    fragment = reader(shape, Layout((8, 8), (Iter(8, 4, T), Iter(4, 1, T), Iter(2, 1, R))), 1)

    def of(tile: Layout) -> list[Pattern]:
        found = alg.access(fragment, tile, 32)
        return [] if found is None else [pattern("a", found, 16)]

    found = choose(shape, 16, of)
    assert found.conflicts == 0, found
    assert injective(found.layout)
    if spans := legal_spans(columns, 16):
        bulk = choose(shape, 16, of, spans)
        assert bulk.conflicts == (0 if any(spans) else bulk.conflicts)


@given(orderly(), st.sampled_from([0, 1, 2, 8]), st.sampled_from([8, 16, 32]), swizzles)
def test_vector_width_is_sound(f: Layout, pad: int, bits: int, s: BitMap) -> None:
    tile = panels.row_major(f.shape, f.shape[1] + pad).with_swizzle(s)
    found = alg.access(f, tile, f.cosize(T))
    if found is None:
        return
    width = vector_width(found, bits)
    for t in range(found.shape[0]):
        spots = sorted(found.place((t, r)).get(Axis.MEMORY, 0) for r in range(found.shape[1]))
        if f.padded or len(set(spots)) < len(spots):
            continue
        for k in range(0, len(spots), width):
            assert spots[k] % width == 0 and spots[k : k + width] == list(range(spots[k], spots[k] + width))


@given(st.sampled_from([(32, 128), (48, 104), (16, 229)]), st.sampled_from([8, 16, 32]))
def test_access_map_is_the_composition(shape: tuple[int, int], bits: int) -> None:
    from tile_core.layout.partition import partitions

    for f in partitions(shape, 96, 4)[:3]:
        tile = panels.row_major(shape, shape[1] + 8)
        found = alg.access(f, tile, 96)
        assert found is not None
        for at in product(*map(range, shape)):
            where = f.place(at)
            assert (
                found.place((where.get(T, 0), where.get(R, 0))).get(Axis.MEMORY, 0)
                == at[0] * (shape[1] + 8) + at[1]
            )
