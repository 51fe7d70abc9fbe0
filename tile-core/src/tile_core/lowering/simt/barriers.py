"""Block barriers where one op's threads must see what another op's threads wrote, or must not yet overwrite it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ...expr import Buffer, Space
from ...program import For, If, Stmt, Sync, While
from ...program.visit import bodies, read_buffers, statements, written_buffers

VISIBLE = (Space.SHARED, Space.GLOBAL)


@dataclass
class Pending:
    """Buffers that were read or written since the last barrier."""

    read: set[Buffer] = field(default_factory=set[Buffer])
    written: set[Buffer] = field(default_factory=set[Buffer])

    def conflicts(self, other: Pending) -> bool:
        return bool(self.written & (other.read | other.written) or self.read & other.written)

    def add(self, other: Pending) -> None:
        self.read |= other.read
        self.written |= other.written

    def clear(self) -> None:
        self.read.clear()
        self.written.clear()

    def copy(self) -> Pending:
        return Pending(set(self.read), set(self.written))

    def without(self, buffers: frozenset[Buffer]) -> Pending:
        return Pending(self.read - buffers, self.written - buffers)


NONE: frozenset[Buffer] = frozenset()


def touched(body: Sequence[Stmt]) -> Pending:
    """What statements read and write in memory that other threads see."""
    out = Pending()
    for s in statements(body):
        out.read |= {b.storage for b in read_buffers(s) if b.space in VISIBLE}
        out.written |= {b.storage for b in written_buffers(s) if b.space in VISIBLE}
    return out


def synchronised(
    body: Sequence[Stmt], pending: Pending, ordered: frozenset[Buffer] = NONE
) -> tuple[Stmt, ...]:
    """``body`` with a barrier before each statement that conflicts with what came since the last one.

    Loops and branches that hold several ops are entered; a loop's last iteration comes before its first. ``pending`` is changed.
    ``ordered``: buffers whose accesses a loop around orders itself.
    """
    out: list[Stmt] = []
    for s in body:
        if isinstance(s, Sync):
            pending.clear()
            out.append(s)
            continue
        inner = _block_level(s)
        if inner is None:
            mine = touched((s,)).without(ordered)
            if pending.conflicts(mine):
                out.append(Sync(span=s.span))
                pending.clear()
            pending.add(mine)
            out.append(s)
            continue
        out.append(_entered(s, pending, ordered))
    return tuple(out)


def _block_level(s: Stmt) -> tuple[Stmt, ...] | None:
    """The body of a loop or branch that all threads of the block enter together, marked by ``uniform``."""
    return bodies(s)[0] if getattr(s, "uniform", False) else None


@dataclass(frozen=True)
class UniformFor(For):
    """A loop that all threads run together."""

    uniform: bool = True


@dataclass(frozen=True)
class PipelinedFor(UniformFor):
    """A loop with waits and barriers of its own, which order all accesses of ``rings`` in it, and nothing else."""

    rings: frozenset[Buffer] = frozenset()


@dataclass(frozen=True)
class UniformIf(If):
    """A branch that all threads take together."""

    uniform: bool = True


@dataclass(frozen=True)
class UniformWhile(While):
    """A loop that all threads run together."""

    uniform: bool = True


def _entered(s: Stmt, pending: Pending, ordered: frozenset[Buffer]) -> Stmt:
    match s:
        case PipelinedFor():
            inside = pending.without(s.rings)
            body = _entered(UniformFor(s.var, s.start, s.extent, s.body), inside, ordered | s.rings)
            pending.clear()
            pending.add(inside)
            pending.add(Pending(set(s.rings), set(s.rings)))  # of the last iterations, for what comes after
            return replace(s, body=bodies(body)[0])
        case UniformFor() | UniformWhile():
            trial = pending.copy()
            condition = touched((While(s.condition, ()),)) if isinstance(s, UniformWhile) else Pending()
            synchronised(s.body, trial, ordered)
            pending.add(trial)  # what the end of one iteration leaves meets the start of the next
            pending.add(condition)
            return replace(s, body=synchronised(s.body, pending, ordered))
        case UniformIf():
            left, right = pending.copy(), pending.copy()
            then, other = synchronised(s.then, left, ordered), synchronised(s.other, right, ordered)
            pending.add(left)
            pending.add(right)
            return replace(s, then=then, other=other)
        case _:
            raise TypeError(type(s).__name__)
