"""Block barriers where one op's threads must see what another op's threads wrote, or must not yet overwrite it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ...expr import Buffer, Space
from ...program import Break, Continue, For, If, Stmt, Sync, While
from ...program.visit import bodies, read_buffers, statements, written_buffers

BLOCK = Sync()
VISIBLE = (Space.SHARED, Space.GLOBAL)


@dataclass
class Pending:
    """Buffers that were read or written since the last barrier.

    ``sharing``: buffers that have bytes of a buffer, too. ``apart``: buffers that tokens keep in order. ``jumps``: what is
    pending where the loop is left or begun anew.
    """

    sharing: Mapping[Buffer, frozenset[Buffer]] = field(default_factory=dict[Buffer, "frozenset[Buffer]"])
    apart: frozenset[Buffer] = frozenset()
    read: set[Buffer] = field(default_factory=set[Buffer])
    written: set[Buffer] = field(default_factory=set[Buffer])
    jumps: list[Pending] = field(default_factory=list["Pending"])

    def conflicts(self, other: Pending) -> bool:
        changed = self._with_sharing(other.written)
        return bool(self.written & (changed | self._with_sharing(other.read)) or self.read & changed)

    def _with_sharing(self, buffers: set[Buffer]) -> set[Buffer]:
        return buffers.union(*(self.sharing.get(b, ()) for b in buffers))

    def add(self, other: Pending) -> None:
        self.read |= other.read
        self.written |= other.written

    def clear(self) -> None:
        self.read.clear()
        self.written.clear()

    def copy(self) -> Pending:
        return replace(self, read=set(self.read), written=set(self.written))

    def leaving(self, buffers: frozenset[Buffer]) -> Pending:
        """The rest, where these buffers are kept in order by other means."""
        rest = {"read": self.read - buffers, "written": self.written - buffers}
        return replace(self, apart=self.apart | buffers, **rest)


def touched(body: Sequence[Stmt], apart: frozenset[Buffer] = frozenset()) -> Pending:
    """What statements read and write in memory that other threads see."""
    out = Pending()
    for s in statements(body):
        out.read |= {b.storage for b in read_buffers(s) if b.space in VISIBLE} - apart
        out.written |= {b.storage for b in written_buffers(s) if b.space in VISIBLE} - apart
    return out


def synchronised(body: Sequence[Stmt], pending: Pending, barrier: Sync = BLOCK) -> tuple[Stmt, ...]:
    """``body`` with ``barrier`` before each statement that conflicts with what came since the last one.

    Loops and branches that hold several ops are entered; a loop's last iteration comes before its first. ``pending`` is changed.
    Barriers of the whole block in ``body`` become ``barrier``.
    """
    out: list[Stmt] = []
    for s in body:
        match s:
            case Sync():
                if s in (BLOCK, barrier):
                    pending.clear()
                out.append(replace(barrier, span=s.span) if s == BLOCK else s)
            case Break() | Continue():
                pending.jumps.append(pending.copy())
                out.append(s)
            case _:
                entered = block_level(s) is not None
                mine = header(s, pending.apart) if entered else touched((s,), pending.apart)
                if pending.conflicts(mine):
                    out.append(replace(barrier, span=s.span))
                    pending.clear()
                pending.add(mine)
                out.append(_entered(s, pending, barrier) if entered else s)
    return tuple(out)


def block_level(s: Stmt) -> tuple[tuple[Stmt, ...], ...] | None:
    """The bodies of a loop or branch that all threads of the block enter together, marked by ``uniform``."""
    return bodies(s) if getattr(s, "uniform", False) else None


def header(s: Stmt, apart: frozenset[Buffer] = frozenset()) -> Pending:
    """What a loop or branch itself reads to decide."""
    empty = replace(s, body=()) if isinstance(s, For | While) else replace(s, then=(), other=())
    return touched((empty,), apart)


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
            return _looped(s, pending, barrier)
        case UniformIf():
            left, right = pending.copy(), pending.copy()
            then, other = synchronised(s.then, left, barrier), synchronised(s.other, right, barrier)
            pending.add(left)
            pending.add(right)
            return replace(s, then=then, other=other)
        case _:
            raise TypeError(type(s).__name__)


def _looped(s: UniformFor | UniformWhile, pending: Pending, barrier: Sync) -> Stmt:
    before, outside, pending.jumps = pending.copy(), pending.jumps, []
    trial = pending.copy()
    _turn(s, trial, barrier)
    for state in (trial, *pending.jumps):
        pending.add(state)  # what the end of one iteration leaves meets the start of the next
    pending.jumps = []
    body = _turn(s, pending, barrier)
    runs = isinstance(s, UniformFor) and isinstance(s.extent, int) and s.extent > 0
    for state in (*pending.jumps, *(() if runs else (before,))):  # a loop may be left at once
        pending.add(state)
    pending.jumps = outside
    return replace(s, body=body)


def _turn(s: UniformFor | UniformWhile, pending: Pending, barrier: Sync) -> tuple[Stmt, ...]:
    """One iteration; the condition of a ``while`` is asked again at its end."""
    body = synchronised(s.body, pending, barrier)
    asked = header(s, pending.apart) if isinstance(s, UniformWhile) else Pending()
    if pending.conflicts(asked):
        body = (*body, replace(barrier, span=s.span))
        pending.clear()
    pending.add(asked)
    return body
