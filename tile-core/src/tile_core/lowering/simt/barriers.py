"""Block barriers where one op's threads must see what another op's threads wrote, or must not yet overwrite it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ...expr import Buffer, Space
from ...program import For, If, Stmt, Sync, While
from ...program.visit import bodies, read_buffers, statements, written_buffers

BLOCK = Sync()
VISIBLE = (Space.SHARED, Space.GLOBAL)


@dataclass
class Pending:
    """Buffers that were read or written since the last barrier. ``apart``: those that tokens keep in order."""

    apart: frozenset[Buffer] = frozenset()
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
        return Pending(self.apart, set(self.read), set(self.written))

    def leaving(self, buffers: frozenset[Buffer]) -> Pending:
        """The rest, where these buffers are kept in order by other means."""
        return Pending(self.apart | buffers, self.read - buffers, self.written - buffers)


def touched(body: Sequence[Stmt], apart: frozenset[Buffer] = frozenset()) -> Pending:
    """What statements read and write in memory that other threads see."""
    out = Pending(apart)
    for s in statements(body):
        out.read |= {b.storage for b in read_buffers(s) if b.space in VISIBLE} - apart
        out.written |= {b.storage for b in written_buffers(s) if b.space in VISIBLE} - apart
    return out


def synchronised(body: Sequence[Stmt], pending: Pending, barrier: Sync = BLOCK) -> tuple[Stmt, ...]:
    """``body`` with ``barrier`` before each statement that conflicts with what came since the last one.

    Loops and branches that hold several ops are entered; a loop's last iteration comes before its first. ``pending`` is changed.
    """
    out: list[Stmt] = []
    for s in body:
        if isinstance(s, Sync):
            pending.clear()
            out.append(barrier if s == BLOCK else s)
            continue
        inner = _block_level(s)
        if inner is None:
            mine = touched((s,), pending.apart)
            if pending.conflicts(mine):
                out.append(replace(barrier, span=s.span))
                pending.clear()
            pending.add(mine)
            out.append(s)
            continue
        out.append(_entered(s, pending, barrier))
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


def _entered(s: Stmt, pending: Pending, barrier: Sync) -> Stmt:
    match s:
        case PipelinedFor():
            inside = pending.leaving(s.rings)
            inner = _entered(UniformFor(s.var, s.start, s.extent, s.body), inside, barrier)
            pending.clear()
            pending.add(inside)
            # of the last iterations, for what comes after
            pending.add(Pending(read=set(s.rings), written=set(s.rings)))
            return replace(s, body=bodies(inner)[0])
        case UniformFor() | UniformWhile():
            trial = pending.copy()
            condition = (
                touched((While(s.condition, ()),), pending.apart)
                if isinstance(s, UniformWhile)
                else Pending()
            )
            synchronised(s.body, trial, barrier)
            pending.add(trial)  # what the end of one iteration leaves meets the start of the next
            pending.add(condition)
            return replace(s, body=synchronised(s.body, pending, barrier))
        case UniformIf():
            left, right = pending.copy(), pending.copy()
            then, other = synchronised(s.then, left, barrier), synchronised(s.other, right, barrier)
            pending.add(left)
            pending.add(right)
            return replace(s, then=then, other=other)
        case _:
            raise TypeError(type(s).__name__)
