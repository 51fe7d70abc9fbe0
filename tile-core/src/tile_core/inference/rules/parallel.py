"""Elementwise loops: which thread runs which iteration, where their fragments must then be, and what has to move."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ...expr import Binary, Buffer, Call, Expr, Select, Space, const, loads, walk
from ...layout.algebra import mismatch, project
from ...layout.convert import Conversion, Kind, convert
from ...layout.layout import Axis, Iter, Layout, grouped, same
from ...program import Atomic, For, Parallel, Stmt, Store
from ...program.visit import bodies, expressions
from ..maps import OPAQUE, Digit, Index, pulled, pushed
from ..model import Access, Change, Elementwise
from ..nest import Nest

Known = Mapping[str, Layout]
ZERO = const(0)
SLOW = 4  # instructions of a scalar function such as exp2


def read(nest: Nest, s: Parallel, everywhere: bool = False) -> Elementwise | None:
    """The op of a ``Parallel`` loop, or of a run of element statements. None if an extent is not known."""
    extents = [e for e in s.extents if isinstance(e, int)]
    if len(extents) != len(s.extents):
        return None
    for v, e in zip(s.vars, extents, strict=True):
        nest.loops[v] = nest.loop(e)
    for inner in _inside(s.body):
        match inner:
            case For():
                nest.within(inner)
            case Parallel():
                for v, e in zip(inner.vars, inner.extents, strict=True):
                    nest.within(For(v, ZERO, e, ()))
            case _:
                pass
    for buffer, indices, _ in _accesses(s.body):
        nest.adopt(buffer, indices)
    for buffer, indices, write in _accesses(s.body):
        nest.element(buffer, indices, write)
    if everywhere and not any(a.tile.space is Space.FRAGMENT for a in nest.found):
        return None
    return nest.op(_work(s.body), everywhere=everywhere)


def _inside(body: Sequence[Stmt]) -> Iterator[Stmt]:
    for s in body:
        yield s
        for inner in bodies(s):
            yield from _inside(inner)


def _accesses(body: Sequence[Stmt]) -> Iterator[tuple[Buffer, tuple[Expr, ...], bool]]:
    for s in _inside(body):
        for x in expressions(s):
            yield from ((load.buffer, load.indices, False) for load in loads(x))
        if isinstance(s, Store | Atomic):
            yield s.buffer, s.indices, not (isinstance(s, Atomic) and s.op == "load")


def _work(body: Sequence[Stmt]) -> int:
    """Instructions of one iteration, roughly."""
    out = 0
    for s in _inside(body):
        for x in expressions(s) if not isinstance(s, Store) else (s.value,):
            out += sum(SLOW if isinstance(e, Call) else isinstance(e, Binary | Select) for e in walk(x))
    return max(1, out)


def widened(op: Elementwise) -> tuple[Elementwise, dict[int, tuple[int, int]]]:
    """A loop over a slice ``f[i + c]`` becomes a loop over all of ``f`` with the window ``c <= i < c + n``.

    So a slice that lines up with nothing needs no data movement, only a guard. Done where every fragment that the
    loop variable indexes agrees on the shift and the extent.
    """
    windows: dict[int, tuple[int, int]] = {}
    if not any(i.constant for a in op.held for i in a.index):
        return op, windows
    for loop, extent in enumerate(op.extents):
        mine = op.held
        uses = [
            (i.constant, size)
            for a in mine
            for i, size in zip(a.index, a.tile.shape, strict=True)
            if _only(i, loop, extent)
        ]
        mixed = sum(any(d.loop == loop for d in i.digits) for a in mine for i in a.index)
        if uses and len(set(uses)) == 1 and mixed == len(uses) and uses[0][0] > 0:
            windows[loop] = (uses[0][0], extent)
            op = _over(op, loop, *uses[0])
    return op, windows


def _only(index: Index, loop: int, extent: int) -> bool:
    return not index.opaque and index.digits == (Digit(loop, 1, extent, 1),)


def _over(op: Elementwise, loop: int, shift: int, size: int) -> Elementwise:
    """The nest with one loop running over ``size`` iterations from ``-shift``; the body does not change."""

    def moved(i: Index, extent: int) -> Index:
        mine = [d for d in i.digits if d.loop == loop]
        if any((d.low, d.extent) != (1, extent) for d in mine):
            return OPAQUE  # the shift would carry from one digit into the next
        digits = tuple(replace(d, extent=size) if d.loop == loop else d for d in i.digits)
        return Index(digits, i.constant - sum(shift * d.stride for d in mine), i.opaque)

    accesses = tuple(
        replace(a, index=tuple(moved(i, op.extents[loop]) for i in a.index)) for a in op.accesses
    )
    extents = tuple(size if k == loop else n for k, n in enumerate(op.extents))
    return replace(op, extents=extents, accesses=accesses)


def depth(access: Access) -> int:
    """Iterations that an access tells apart."""
    out = 1
    for i in access.index:
        for d in i.digits:
            out *= d.extent
    return out


def loop_from(op: Elementwise, known: Known) -> list[tuple[Access, Layout]]:
    """Partitions that laid-out fragments suggest: deepest access first, written before read, few copies first."""
    out: list[tuple[Access, Layout]] = []
    for access in op.held:
        layout = known.get(access.tile.name)
        if layout is None or access.opaque:
            continue
        loop = pulled(layout, access.index, op.extents)
        if loop is not None and (not op.serial or _serial_in_threads(op, loop)):
            out.append((access, loop))
    return sorted(out, key=lambda s: (-depth(s[0]), not s[0].write, len(s[1].replicas)))


def _serial_in_threads(op: Elementwise, loop: Layout) -> bool:
    """The serial loops of the nest run in each thread: no thread digit may count them."""
    groups = grouped(loop)
    return groups is not None and not any(
        i.axis is Axis.THREAD and i.extent > 1 for g in groups[len(groups) - op.serial :] for i in g
    )


def extended(op: Elementwise, partition: Layout) -> Layout:
    """A partition of the parallel loops with the serial ones added, innermost."""
    serial = op.extents[len(op.extents) - op.serial :]
    inner: list[Iter] = []
    step = 1
    for n in reversed(serial):
        inner.append(Iter(n, step, Axis.REGISTER))
        step *= n
    outer = tuple(
        replace(i, stride=i.stride * step) if i.axis is Axis.REGISTER else i for i in partition.iters
    )
    return replace(
        partition, shape=op.extents, box=partition.box + serial, iters=outer + tuple(reversed(inner))
    )


def leading(op: Elementwise, loop: Layout) -> Layout:
    """A partition without the serial loops: which thread runs which iteration of the parallel ones."""
    if not op.serial:
        return loop
    out = project(loop, range(len(op.extents) - op.serial))
    assert out is not None
    return out


def settled(op: Elementwise, known: Known, found: list[tuple[Access, Layout]]) -> bool:
    """No fragment still without layout tells more iterations apart than the best known one."""
    unknown = [a for a in op.held if a.tile.name not in known and not a.opaque]
    return bool(found) and all(depth(a) <= depth(found[0][0]) for a in unknown)


def new_layouts(op: Elementwise, loop: Layout, known: Known) -> dict[str, Layout]:
    """Layouts that fragments get from the loop that touches them."""
    out: dict[str, Layout] = {}
    for access in op.held:
        if access.tile.name not in known and access.tile.name not in out:
            layout = pushed(loop, access.index, access.tile.shape)
            if layout is not None:
                out[access.tile.name] = layout
    return out


def changes(
    op: Elementwise, loop: Layout, known: Known, writer: Mapping[str, str], subgroup: int
) -> list[Change]:
    """Accesses whose element is not where the iteration runs. Always solvable: the last resort is shared memory."""
    out: list[Change] = []
    for access in op.held:
        layout = known[access.tile.name]
        need = pushed(loop, access.index, access.tile.shape)
        if need is not None and same(need, layout):
            continue
        reason = _why_apart(access, layout, loop, op)
        if reason is None:
            continue
        found = Conversion(Kind.SHARED, shared_bytes=access.tile.bytes, reason=reason)
        if need is not None:
            have, want = (need, layout) if access.write else (layout, need)
            found = convert(have, want, access.tile.bits, subgroup)
            found = found if found.reason else replace(found, reason=reason)
        if (
            access.write or not found.free
        ):  # a free write still needs a mask: only holders of the element store
            before = writer.get(access.tile.name, "its producer")
            out.append(Change(access.tile, op.name, before, found))
    return out


def _why_apart(access: Access, layout: Layout, loop: Layout, op: Elementwise) -> str | None:
    if access.opaque:
        return "the index is not a sum of loop digits, so the element may be in any thread"
    home = pulled(layout, access.index, op.extents)
    if home is None:
        return "the slice does not line up with the digits of the layout"
    return mismatch(home, loop) or (mismatch(loop, home) if access.write else None)
