"""Places of tiles in shared memory: random programs of uses, against a simulation that remembers who wrote each byte."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from tile_core.dtypes import INT32, dtype
from tile_core.expr import Buffer, Load, Space, Var, const
from tile_core.lowering.simt.arena import arena, size_of
from tile_core.lowering.simt.barriers import Pending, UniformFor, synchronised
from tile_core.program import Stmt, Store, Sync
from tile_core.program.visit import read_buffers, statements, written_buffers

TILES = [
    Buffer(f"t{n}", (size,), dtype("float16"), Space.SHARED, number=n)
    for n, size in enumerate((64, 40, 128, 8, 96))
]
OUT = Buffer("out", (1,), dtype("float16"), Space.LOCAL)
ZERO = const(0)


def write(n: int) -> Stmt:
    return Store(TILES[n], (ZERO,), const(1.0, "float16"))


def read(n: int) -> Stmt:
    return Store(OUT, (ZERO,), Load(TILES[n], (ZERO,)))


def used(n: int) -> tuple[Stmt, ...]:
    """As scratch is used: written, then read."""
    return write(n), read(n)


def loop(body: Sequence[Stmt]) -> Stmt:
    return UniformFor(Var("k", INT32, 7), ZERO, 3, tuple(body))


numbers = st.integers(0, len(TILES) - 1)
flat = st.lists(numbers.map(used), min_size=1, max_size=4).map(
    lambda parts: tuple(s for p in parts for s in p)
)
programs = st.lists(flat | flat.map(lambda body: (loop(body),)), min_size=1, max_size=5).map(
    lambda parts: tuple(s for p in parts for s in p)
)
ALIGNED = {b: (16, 128, 1024, 16, 128)[n] for n, b in enumerate(TILES)}


def steps(body: Sequence[Stmt]) -> list[Stmt]:
    """Statements in the order in which they run."""
    out: list[Stmt] = []
    for s in body:
        out += steps(s.body) * 3 if isinstance(s, UniformFor) else [s]
    return out


def survives(body: Sequence[Stmt], offsets: dict[Buffer, int]) -> bool:
    """Whether every read finds what was last written to its tile."""
    owner: dict[int, Buffer] = {}
    for s in steps(body):
        for b in read_buffers(s):
            if b.space is Space.SHARED and any(
                owner.get(at) != b for at in range(offsets[b], offsets[b] + size_of(b))
            ):
                return False
        for b in written_buffers(s):
            if b.space is Space.SHARED:
                owner.update(dict.fromkeys(range(offsets[b], offsets[b] + size_of(b)), b))
    return True


@given(programs)
def test_values_survive(body: tuple[Stmt, ...]):
    found = arena(body, ALIGNED, frozenset(TILES))
    assert all(found.offsets[b] % a == 0 for b, a in ALIGNED.items())
    assert survives(body, dict(found.offsets))
    assert found.size <= sum(size_of(b) + 1024 for b in TILES)


@given(programs)
def test_a_barrier_stands_between_tiles_that_share_bytes(body: tuple[Stmt, ...]):
    found = arena(body, ALIGNED, frozenset(TILES))
    since: dict[Buffer, None] = {}
    for s in steps(synchronised(body, Pending(found.sharing))):
        if isinstance(s, Sync):
            since.clear()
        for b in written_buffers(s):
            assert not since.keys() & found.sharing.get(b, frozenset())
        since.update((b, None) for b in (*read_buffers(s), *written_buffers(s)) if b.space is Space.SHARED)


def test_tiles_one_after_the_other_share_and_carried_ones_do_not():
    body = (*used(0), *used(2), loop((read(4), write(4), *used(1))))
    found = arena(body, ALIGNED, frozenset(TILES[:4]))
    assert found.offsets[TILES[0]] == found.offsets[TILES[2]]
    assert TILES[1] not in found.sharing[TILES[4]]
    assert not any(isinstance(s, Sync) for s in statements(body))


def test_nothing_is_shared_where_there_is_enough():
    found = arena((*used(0), *used(2)), ALIGNED, frozenset(TILES), enough=1 << 20)
    assert not any(found.sharing.values())


def test_a_loop_that_may_not_run_orders_nothing():
    n = Var("n", INT32, 8)
    inner = UniformFor(Var("k", INT32, 7), ZERO, n, (write(1), Sync(), read(1)))
    found = synchronised((write(0), inner, read(0)), Pending())
    assert isinstance(found[-2], Sync)
    sure = UniformFor(Var("k", INT32, 7), ZERO, 2, (write(1), Sync(), read(1)))
    assert not isinstance(synchronised((write(0), sure, read(0)), Pending())[-2], Sync)
