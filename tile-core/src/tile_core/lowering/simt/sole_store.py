"""Whether copies to a tensor touch elements that nothing else in their launch does: such stores need no order with others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from ...expr import Buffer, Var, binary, variables
from ...expr.affine import linear
from ...program import Copy, For, If, Launch, Stmt, While
from ...program.visit import bodies, defined, read_buffers, statements, written_buffers

Path = tuple[
    tuple[Stmt, int], ...
]  # what is around a statement, outermost first, and in which body it stands


def sole_store(launch: Launch, tensor: Buffer) -> bool:
    """Whether a block touches each place of the tensor once: by one copy, to another place in each iteration, in one branch of
    several, or by copies to places apart.
    """
    users = [
        (s, path)
        for s, path in _placed(launch.body, ())
        if tensor in {b.storage for b in (*read_buffers(s), *written_buffers(s))}
    ]
    loops = [t for _, path in users for t, _ in path if isinstance(t, For | While)]
    match users:
        case [(Copy() as copy, _)] if loops:
            return len(loops) == 1 and _moves(copy, loops[0])
        case _:
            return not loops and all(
                _exclusive(p, q) or _apart(s, t) for (s, p), (t, q) in combinations(users, 2)
            )


def _placed(body: Sequence[Stmt], around: Path) -> Iterator[tuple[Stmt, Path]]:
    for s in body:
        yield s, around
        for n, inner in enumerate(bodies(s)):
            yield from _placed(inner, (*around, (s, n)))


def _exclusive(a: Path, b: Path) -> bool:
    """Whether two statements stand in different branches."""
    apart = next(((x, y) for x, y in zip(a, b, strict=False) if x[0] is not y[0] or x[1] != y[1]), None)
    return apart is not None and apart[0][0] is apart[1][0] and isinstance(apart[0][0], If)


def _apart(a: Stmt, b: Stmt) -> bool:
    """Whether two copies store to places that do not meet."""
    if not isinstance(a, Copy) or not isinstance(b, Copy):
        return False
    for x, y, m, n in zip(a.dst.start, b.dst.start, a.dst.extent, b.dst.extent, strict=True):
        between = linear(binary("-", y, x))
        if isinstance(m, int) and isinstance(n, int) and not between.terms:
            if between.constant >= m or -between.constant >= n:
                return True
    return False


def _moves(copy: Copy, loop: For | While) -> bool:
    """Whether iterations of a loop store to places that do not meet."""
    if not isinstance(loop, For) or loop.var is None:
        return False
    changing: set[Var] = {loop.var, *(v for s in statements(loop.body) for v in defined(s))}
    for start, extent in zip(copy.dst.start, copy.dst.extent, strict=True):
        terms = dict(linear(start).terms)
        step = terms.pop(loop.var, 0) * loop.step
        others = {v for term in terms for v in variables(term)}
        if isinstance(extent, int) and abs(step) >= extent and not changing & others:
            return True
    return False
