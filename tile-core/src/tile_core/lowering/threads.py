"""Thread-level code for a machine where a block is one thread of control: loops over the threads between barriers.

Takes a launch whose statements are done by each thread, gives one whose statements are done once. A run of per-thread
statements becomes a loop over the threads; a private buffer or value that lives across runs gets one element per thread.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from ..errors import Unsupported
from ..expr import Buffer, Expr, Load, Space, Var, expr, rebuilt, variables
from ..program import (
    Alloc,
    Atomic,
    Bind,
    Break,
    Continue,
    For,
    If,
    Launch,
    Parallel,
    Region,
    Stmt,
    Store,
    Sync,
    TileOp,
    While,
)
from ..program.visit import (
    REGION_FIELDS,
    bodies,
    buffers,
    defined,
    expressions,
    mapped,
    statements,
)
from .uniform import Varying, escapes, private

Body = tuple[Stmt, ...]


def distribute(launch: Launch) -> Launch:
    """The launch without thread variables. Raises ``Unsupported`` where threads part ways around a barrier or a tile op."""
    if not launch.thread_vars:
        return launch
    split = _Split(launch, Varying.of(launch))
    body = split.body(launch.body, in_loop=False)
    return replace(launch, body=_Spread(launch, split).applied(body), thread_vars=())


@dataclass(frozen=True)
class _Run(Stmt):
    """Per-thread statements that no barrier interrupts."""

    body: Body = ()
    number: int = 0
    in_loop: bool = False


@dataclass
class _Split:
    launch: Launch
    varying: Varying
    runs: list[_Run] = field(default_factory=list)

    def body(self, body: Body, in_loop: bool) -> Body:
        out: list[Stmt] = []
        waiting: list[Stmt] = []
        for s in body:
            if not self._once(s):
                waiting.append(s)
                continue
            out += self._run(waiting, in_loop)
            waiting = []
            out.append(self._whole(s, in_loop))
        return (*out, *self._run(waiting, in_loop))

    def _run(self, waiting: list[Stmt], in_loop: bool) -> list[Stmt]:
        if not waiting:
            return []
        self.runs.append(_Run(tuple(waiting), len(self.runs), in_loop))
        return [self.runs[-1]]

    def _once(self, s: Stmt) -> bool:
        """Whether the block does ``s`` once, rather than each thread for itself."""
        match s:
            case Sync() | Alloc() | Break() | Continue():
                return True
            case Bind():
                return s.var not in self.varying.variables
            case Store():
                return private(s.buffer) and s.buffer.storage not in self.varying.buffers
            case TileOp() | Parallel():
                return not self.varying.anywhere(s)
            case For() | While() | If():
                return escapes(s) or any(self._needs_block(x) for body in bodies(s) for x in body)
            case _:
                return False

    def _needs_block(self, s: Stmt) -> bool:
        """Whether ``s`` or a statement in it must be done by the block once."""
        match s:
            case Bind() | Alloc() | Break() | Continue():
                return False
            case For() | While() | If():
                return any(self._needs_block(x) for body in bodies(s) for x in body)
            case _:
                return self._once(s)

    def _whole(self, s: Stmt, in_loop: bool) -> Stmt:
        match s:
            case For() | While() | If():
                if self.varying.here(s):
                    raise _divergent(s)
                inner = in_loop or not isinstance(s, If)
                return mapped(s, lambda x: x, lambda b: self.body(b, inner))
            case _:
                return s


def _divergent(s: Stmt) -> Unsupported:
    inside = next(
        (x for x in statements((s,)) if isinstance(x, (Sync, TileOp, Parallel, Break, Continue))), s
    )
    return Unsupported(
        "threads of a block part ways here, around a step that all of them do together",
        s.span,
        why="a barrier, a tile operation or a loop exit is inside, and the condition differs between threads",
        help="move it out of the branch, or make the condition the same for all threads of the block",
        related=() if inside.span is None else (("done by all threads", inside.span),),
    )


@dataclass
class _Spread:
    """Gives private state that lives across runs one element per thread, and puts runs into loops."""

    launch: Launch
    split: _Split
    spread: dict[Buffer, Buffer] = field(default_factory=dict)
    cells: dict[Var, Buffer] = field(default_factory=dict)

    def applied(self, body: Body) -> Body:
        self._find_buffers()
        self._find_values()
        return self._body(body)

    def _find_buffers(self) -> None:
        users: dict[Buffer, set[int]] = {}
        for run in self.split.runs:
            for b in buffers(run.body):
                users.setdefault(b.storage, set()).add(run.number)
        for b in self.split.varying.buffers:
            numbers = users.get(b, set())
            if len(numbers) > 1 or any(self.split.runs[n].in_loop for n in numbers):
                self.spread[b] = replace(
                    b, shape=(self.launch.thread_count, *b.shape), space=Space.LOCAL, strides=None
                )

    def _find_values(self) -> None:
        made = {
            v: run.number for run in self.split.runs for s in run.body for v in defined(s) if not bodies(s)
        }
        used: dict[Var, set[int]] = {}
        for run in self.split.runs:
            for s in statements(run.body):
                for v in (v for x in expressions(s) for v in variables(x)):
                    used.setdefault(v, set()).add(run.number)
        for v, number in made.items():
            if used.get(v, set()) - {number}:
                self.cells[v] = Buffer(
                    f"{v.name}_of", (self.launch.thread_count,), v.dtype, Space.LOCAL, number=v.number
                )

    @property
    def _thread(self) -> Expr:
        """The number of the thread in its block; the first thread variable changes fastest."""
        out: Expr = expr(0)
        for var, extent in zip(reversed(self.launch.thread_vars), reversed(self._extents), strict=True):
            out = out * extent + var
        return out

    @property
    def _extents(self) -> tuple[int, ...]:
        return self.launch.threads[: len(self.launch.thread_vars)]

    def _body(self, body: Iterable[Stmt]) -> Body:
        out: list[Stmt] = []
        for s in body:
            match s:
                case _Run():
                    out.append(self._loop(s))
                case Alloc() if s.buffer in self.spread:
                    out.append(Alloc(self.spread[s.buffer], span=s.span))
                case For() | While() | If():
                    out.append(mapped(s, lambda x: x, self._body))
                case _:
                    out.append(s)
        return tuple(out)

    def _loop(self, run: _Run) -> Stmt:
        vars = tuple(reversed(self.launch.thread_vars))
        made = {v for s in run.body for v in defined(s)}
        body: list[Stmt] = []
        for s in run.body:
            body.append(self._statement(s, made))
            for v in defined(s):
                if v in self.cells:
                    body.append(Store(self.cells[v], (self._thread,), v))
        return Parallel(vars, tuple(reversed(self._extents)), tuple(body))

    def _statement(self, s: Stmt, made: set[Var]) -> Stmt:
        """``s`` with private buffers and values of other runs read from, and written to, this thread's element."""

        def change(x: Expr) -> Expr:
            if isinstance(x, Var):
                known = x in self.cells and x not in made
                return Load(self.cells[x], (self._thread,)) if known else x
            if isinstance(x, Load) and x.buffer.storage in self.spread:
                return replace(
                    x, buffer=self._wide(x.buffer), indices=(self._thread, *map(change, x.indices))
                )
            return rebuilt(x, change)

        out = mapped(s, change, lambda body: tuple(self._statement(x, made) for x in body))
        return self._widened(out)

    def _wide(self, b: Buffer) -> Buffer:
        if b.source is None:
            return self.spread[b]
        return replace(b, shape=(self.launch.thread_count, *b.shape), source=self._wide(b.source))

    def _widened(self, s: Stmt) -> Stmt:
        """The buffers that ``s`` itself names get the dimension of the thread."""
        match s:
            case TileOp():
                found = {f: getattr(s, f, None) for f in REGION_FIELDS}
                changed = {f: self._region(r) for f, r in found.items() if isinstance(r, Region)}
                return replace(s, **changed)
            case Alloc():
                return replace(s, buffer=self._wide(s.buffer)) if s.buffer in self.spread else s
            case Store() | Atomic() if s.buffer.storage in self.spread:
                return replace(s, buffer=self._wide(s.buffer), indices=(self._thread, *s.indices))
            case _:
                return s

    def _region(self, r: Region) -> Region:
        if r.buffer.storage not in self.spread:
            return r
        return replace(
            r,
            buffer=self._wide(r.buffer),
            start=(self._thread, *r.start),
            extent=(1, *r.extent),
            point=(True, *r.point),
        )
