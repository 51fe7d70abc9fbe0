"""Matrix multiplication: takes a multiply and the target's instructions, gives every way to do it with its layouts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from math import prod

from ...expr import Space
from ...hardware import Atom, TargetInfo
from ...layout.algebra import permute, product
from ...layout.digits import lane, reg
from ...layout.layout import Axis, Iter, Layout, grouped
from ...layout.partition import partitions
from ..model import GemmChoice, Multiply, Tile

# an operand of this type may be given to an instruction of that type: it reads the same 32 bits and drops mantissa bits
ROUNDED = {"float32": "tfloat32"}
BESIDE_SUMS = 26  # registers that an instruction of the matrix unit needs beside its sums (ptxas, C7602)
UNBOUNDED = 1 << 20
WARPGROUP_ROWS = 64
RUNS = (4, 2, 1)  # neighbouring columns of a thread: what one load of a row of b can bring


def fits(atom: Atom, op: Multiply) -> bool:
    """Whether the instruction multiplies these types from where the operands are stored."""
    a, b, c = op.types
    round_to = {} if op.exact else ROUNDED
    if (
        atom.types[2] != c
        or atom.types[0] not in (a, round_to.get(a))
        or atom.types[1] not in (b, round_to.get(b))
    ):
        return False
    if atom.k_major and (not op.b_transposed or (op.a.space is Space.SHARED and op.a_transposed)):
        return False
    if atom.shared_a and not op.placed:
        return False
    if atom.apart and not (op.alone and op.c.space is Space.FRAGMENT and op.a.space is Space.SHARED):
        return False  # what the sums cost on their way to registers and back would eat what the unit gains
    return not (atom.shared_a and op.shape[2] % atom.shape[2])  # nobody can mask what the unit itself reads


def choices(op: Multiply, threads: int, info: TargetInfo, block: int = 0) -> tuple[GemmChoice, ...]:
    """Every instruction with every split of the warps, best kind first; plain multiply-adds if there is none.

    ``block``: threads among which registers are dealt out when a block begins, 0 if these are the threads that do the gemm. An
    instruction may not name more than its thread has then, whatever is moved there later (measured: ptxas, C7602).
    """
    key = replace(
        op, name="", a=replace(op.a, name="a"), b=replace(op.b, name="b"), c=replace(op.c, name="c")
    )
    file = info.space("register")
    most = file.capacity // 4 // block - BESIDE_SUMS if file and block else UNBOUNDED
    return _choices(key, threads, info, most)


@lru_cache(maxsize=1024)
def _choices(op: Multiply, threads: int, info: TargetInfo, most: int) -> tuple[GemmChoice, ...]:
    usable = [a for a in info.atoms if threads % a.threads == 0 and fits(a, op)]
    for atom in usable:
        if op.shape[0] >= min(atom.shape[0], WARPGROUP_ROWS) and (found := _exact(op, atom, threads, most)):
            return found
    found = tuple(
        c
        for atom in usable
        if not atom.shared_a
        for warps in splits(threads // atom.threads, op.policy)
        if (c := _choice(op, atom, warps, True, most))
    )
    return found or (plain(op, threads),)


def _exact(op: Multiply, atom: Atom, threads: int, most: int) -> tuple[GemmChoice, ...]:
    groups = threads // atom.threads
    for policy in dict.fromkeys((op.policy, "square")):
        if found := tuple(
            c for warps in splits(groups, policy) if (c := _choice(op, atom, warps, False, most))
        ):
            return found
    return ()


def splits(groups: int, policy: str) -> Iterator[tuple[int, int]]:
    """Ways to deal groups of threads to rows and columns: all, or the one that the user asked for."""
    if policy == "square":
        yield from ((m, groups // m) for m in range(1, groups + 1) if groups % m == 0)
    else:
        yield (groups, 1) if policy == "full_row" else (1, groups)


def plain(op: Multiply, threads: int) -> GemmChoice:
    """Each thread owns elements of c and reads rows of a and columns of b from shared memory.

    Of all ways to deal them out the one that reads least for a multiply-add: nearly square blocks, in runs along the columns.
    """
    found = [p for v in RUNS for p in partitions(op.c.shape, threads, v)]
    fewest = min(p.cosize(Axis.REGISTER) for p in found)
    best = min((p for p in found if p.cosize(Axis.REGISTER) == fewest), key=_read_for_a_step)
    return GemmChoice(None, 1, (1, 1), None, None, best)


def _read_for_a_step(c: Layout) -> int:
    """Rows of a and columns of b that a thread reads for one step along k."""
    groups = grouped(c)
    assert groups is not None, "a partition has digits of its own for each dimension"
    return sum(prod(i.extent for i in group if i.axis is Axis.REGISTER) for group in groups)


def _choice(op: Multiply, atom: Atom, warps: tuple[int, int], pad: bool, most: int) -> GemmChoice | None:
    m, n, k = op.shape
    wm, wn = warps
    height, _, depth = atom.shape
    if not pad and (m % (height * wm) or n % wn or (n // wn) % atom.n_step):
        return None
    width = atom.n_step if pad else _width(atom, n // wn, most)
    rm, rn, rk = -(-m // (height * wm)), -(-n // (width * wn)), -(-k // depth)
    along_m, along_n = lane(wm), lane(wn, wm)
    c = _tiled((along_m, reg(rm, rn)), (along_n, reg(rn)), None, atom.c(width), (m, n))
    a = atom.a and _tiled((along_m, reg(rm, rk)), (reg(rk),), along_n, atom.a, (m, k))
    b = None
    if atom.b is not None:
        pieces = rn * width // atom.b.shape[1]  # b's layout may describe one step of the instruction's width
        b = _tiled((reg(rk),), (along_n, reg(pieces, rk)), along_m, atom.b, (k, n))
    return GemmChoice(atom, width, warps, a, b, c)


def _tiled(
    rows: tuple[Iter, ...],
    columns: tuple[Iter, ...],
    copies: Iter | None,
    unit: Layout,
    shape: tuple[int, int],
) -> Layout:
    box = tuple(prod(i.extent for i in d) for d in (rows, columns))
    out = product(Layout(box, rows + columns, (copies,) if copies and copies.extent > 1 else ()), unit)
    assert out is not None
    return replace(out, shape=shape)


def _width(atom: Atom, n: int, most: int) -> int:
    """The widest instruction that divides n and has at most so many sums in a thread."""
    step, widest = atom.n_step, min(atom.shape[1], n, most * atom.threads // atom.shape[0])
    return next((w for w in range(widest // step * step, 0, -step) if n % w == 0), step)


def strict(op: Multiply, choice: GemmChoice) -> dict[str, Layout]:
    """Layouts that the choice demands: the accumulator, and operands in fragments (digits permuted if transposed)."""
    out = {op.c.name: choice.c}
    for tile, layout in needs(op, choice):
        if tile.space is Space.FRAGMENT and layout is not None:
            out.setdefault(tile.name, layout)
    return out


def needs(op: Multiply, choice: GemmChoice) -> Iterator[tuple[Tile, Layout | None]]:
    """Each operand with the layout it must have as it is stored."""
    for tile, layout, flip in ((op.a, choice.a, op.a_transposed), (op.b, choice.b, op.b_transposed)):
        yield tile, flipped(layout) if flip and layout is not None else layout
    yield op.c, choice.c


@lru_cache(maxsize=1024)
def flipped(layout: Layout) -> Layout:
    """The layout of the transposed tile."""
    out = permute(layout, (1, 0))
    assert out is not None
    return out
