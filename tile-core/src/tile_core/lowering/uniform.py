"""Which values differ between the threads of a block: needed to put per-thread code into loops over the threads."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ..expr import Buffer, Expr, Load, Space, Var, walk
from ..program import (
    Atomic,
    Bind,
    Break,
    Continue,
    For,
    If,
    Launch,
    Parallel,
    Stmt,
    Store,
    TileOp,
    While,
)
from ..program.visit import (
    bodies,
    defined,
    expressions,
    read_buffers,
    written_buffers,
)

PRIVATE = (Space.LOCAL, Space.VAR)


def private(b: Buffer) -> bool:
    """Whether each thread has its own copy."""
    return b.storage.space in PRIVATE


@dataclass
class Varying:
    """Variables and private buffers whose contents differ between threads. Everything else is the same in all threads."""

    variables: set[Var] = field(default_factory=set)
    buffers: set[Buffer] = field(default_factory=set)

    @staticmethod
    def of(launch: Launch) -> Varying:
        """The least solution: passes over the body until nothing is added."""
        found = Varying(set(launch.thread_vars))
        size = -1
        while size != len(found.variables) + len(found.buffers):
            size = len(found.variables) + len(found.buffers)
            found._body(launch.body, False)
        return found

    def expr(self, x: Expr) -> bool:
        return any(
            e in self.variables
            if isinstance(e, Var)
            else isinstance(e, Load) and e.buffer.storage in self.buffers
            for e in walk(x)
        )

    def here(self, s: Stmt) -> bool:
        """Whether ``s`` itself, not the statements in it, reads anything that differs."""
        return any(self.expr(x) for x in expressions(s)) or any(
            b.storage in self.buffers for b in read_buffers(s)
        )

    def anywhere(self, s: Stmt) -> bool:
        """Whether ``s`` or a statement in it reads or writes anything that differs."""
        if self.here(s) or any(b.storage in self.buffers for b in written_buffers(s)):
            return True
        return any(self.anywhere(x) for body in bodies(s) for x in body)

    def _body(self, body: Iterable[Stmt], diverged: bool) -> None:
        for s in body:
            self._statement(s, diverged)

    def _statement(self, s: Stmt, diverged: bool) -> None:
        differs = diverged or self.here(s)
        match s:
            case Bind():
                self.variables |= {s.var} if self.here(s) else set()
            case Atomic():
                self.variables |= set(defined(s))
                self._wrote(s, True)
            case Store() | TileOp():
                self._wrote(s, differs)
                self.variables |= set(defined(s)) if differs else set()
            case For() | While():
                self.variables |= set(defined(s)) if self.here(s) else set()
                self._body(s.body, differs or any(self._leaves(x, False) for x in s.body))
            case If():
                self._body(s.then, differs)
                self._body(s.other, differs)
            case Parallel():
                self._body(s.body, differs)
            case _:
                pass

    def _wrote(self, s: Stmt, differs: bool) -> None:
        if differs:
            self.buffers |= {b.storage for b in written_buffers(s) if private(b)}

    def _leaves(self, s: Stmt, diverged: bool) -> bool:
        """Whether some threads may leave the enclosing loop here while others stay."""
        match s:
            case Break() | Continue():
                return diverged
            case If():
                differs = diverged or self.here(s)
                return any(self._leaves(x, differs) for x in (*s.then, *s.other))
            case _:
                return False


def escapes(s: Stmt) -> bool:
    """Whether ``s`` holds a break or continue of a loop around it."""
    match s:
        case Break() | Continue():
            return True
        case If():
            return any(escapes(x) for x in (*s.then, *s.other))
        case _:
            return False
