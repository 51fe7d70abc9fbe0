"""Block barriers where one op's threads must see what another op's threads wrote, or must not yet overwrite it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ...expr import Buffer, Space
from ...program import Break, Continue, For, If, Stmt, Sync, While
from ...program.visit import bodies, read_buffers, statements, written_buffers

VISIBLE = (Space.SHARED, Space.GLOBAL)


@dataclass
class Pending:
    """Buffers that were read or written since the last barrier. ``sharing``: buffers that have bytes of a buffer, too."""

    sharing: Mapping[Buffer, frozenset[Buffer]] = field(default_factory=dict[Buffer, "frozenset[Buffer]"])
    read: set[Buffer] = field(default_factory=set[Buffer])
    written: set[Buffer] = field(default_factory=set[Buffer])
    jumps: list[Pending] = field(
        default_factory=list["Pending"]
    )  # what is pending where the loop is left or begun anew

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
        return Pending(self.sharing, set(self.read), set(self.written), self.jumps)


def touched(body: Sequence[Stmt]) -> Pending:
    """What statements read and write in memory that other threads see."""
    out = Pending()
    for s in statements(body):
        out.read |= {b.storage for b in read_buffers(s) if b.space in VISIBLE}
        out.written |= {b.storage for b in written_buffers(s) if b.space in VISIBLE}
    return out


def synchronised(body: Sequence[Stmt], pending: Pending) -> tuple[Stmt, ...]:
    """``body`` with a barrier before each statement that conflicts with what came since the last one.

    Loops and branches that hold several ops are entered; a loop's last iteration comes before its first. ``pending`` is changed.
    """
    out: list[Stmt] = []
    for s in body:
        match s:
            case Sync(threads=0):
                pending.clear()
                out.append(s)
            case Break() | Continue():
                pending.jumps.append(pending.copy())
                out.append(s)
            case _:
                entered = block_level(s) is not None
                mine = header(s) if entered else touched((s,))
                if pending.conflicts(mine):
                    out.append(Sync(span=s.span))
                    pending.clear()
                pending.add(mine)
                out.append(_entered(s, pending) if entered else s)
    return tuple(out)


def block_level(s: Stmt) -> tuple[tuple[Stmt, ...], ...] | None:
    """The bodies of a loop or branch that all threads of the block enter together, marked by ``uniform``."""
    return bodies(s) if getattr(s, "uniform", False) else None


def header(s: Stmt) -> Pending:
    """What a loop or branch itself reads to decide."""
    return touched((replace(s, body=()) if isinstance(s, For | While) else replace(s, then=(), other=()),))


@dataclass(frozen=True)
class UniformFor(For):
    """A loop that all threads run together."""

    uniform: bool = True


@dataclass(frozen=True)
class UniformIf(If):
    """A branch that all threads take together."""

    uniform: bool = True


@dataclass(frozen=True)
class UniformWhile(While):
    """A loop that all threads run together."""

    uniform: bool = True


def _entered(s: Stmt, pending: Pending) -> Stmt:
    match s:
        case UniformFor() | UniformWhile():
            before, outside, pending.jumps = pending.copy(), pending.jumps, []
            trial = pending.copy()
            _turn(s, trial)
            for state in (trial, *pending.jumps):
                pending.add(state)  # what the end of one iteration leaves meets the start of the next
            pending.jumps = []
            body = _turn(s, pending)
            runs = isinstance(s, UniformFor) and isinstance(s.extent, int) and s.extent > 0
            for state in (*pending.jumps, *(() if runs else (before,))):  # a loop may be left at once
                pending.add(state)
            pending.jumps = outside
            return replace(s, body=body)
        case UniformIf():
            left, right = pending.copy(), pending.copy()
            then, other = synchronised(s.then, left), synchronised(s.other, right)
            pending.add(left)
            pending.add(right)
            return replace(s, then=then, other=other)
        case _:
            raise TypeError(type(s).__name__)


def _turn(s: UniformFor | UniformWhile, pending: Pending) -> tuple[Stmt, ...]:
    """One iteration; the condition of a ``while`` is asked again at its end."""
    body = synchronised(s.body, pending)
    asked = header(s) if isinstance(s, UniformWhile) else Pending()
    if pending.conflicts(asked):
        body = (*body, Sync(span=s.span))
        pending.clear()
    pending.add(asked)
    return body
