"""What a legal tile program is: variables in scope, tiles written before they are read, memory known by one name."""

from __future__ import annotations

from collections.abc import Iterator

from ..errors import KernelError
from ..expr import Buffer, Space, Var, variables
from ..span import Span
from .nodes import Alloc, Bind, For, Gemm, If, Launch, Parallel, Stmt, TileProgram, While
from .visit import bodies, defined, expressions, read_buffers, statements, written_buffers


def verify(program: TileProgram) -> None:
    """Check a program.

    Raises:
        KernelError: at the first statement that is wrong, with the user's place.
    """
    scalars = {p.value for p in program.params if isinstance(p.value, Var)}
    _scoped(program.body, scalars.union(used_dimensions(program)))
    _initialised(program)
    _pointers_told_apart(program)


def _scoped(body: tuple[Stmt, ...], scope: set[Var]) -> None:
    """Every variable that is used is defined by an enclosing statement, or before in an enclosing body."""
    known = set(scope)
    for s in body:
        own = set[Var]() if isinstance(s, (Bind,)) else set(defined(s))
        for x in expressions(s):
            for v in variables(x):
                if v not in known:
                    _unknown(v, s)
        inner = known | own
        for b in bodies(s):
            _scoped(b, inner)
        if not isinstance(s, (For, Parallel, Launch, While, If)):
            known |= set(defined(s))


def _unknown(v: Var, s: Stmt) -> None:
    if v.number == 0:
        raise KernelError(
            f"the dimension {v.name} is in the shape of no tensor parameter",
            s.span,
            why="the value of a symbolic dimension is taken from the tensors that are passed",
        )
    raise KernelError(
        f"{v.name} is used outside of the loop or branch that gives it a value",
        s.span,
        help="keep the value in a mutable scalar: T.alloc_var(dtype)",
        related=[("it gets its value here", v.span)] if v.span else (),
    )


def _initialised(program: TileProgram) -> None:
    """On-chip tiles are written somewhere before they are read: earlier in the text, or later in an enclosing loop."""
    open_program = program.is_open
    written: set[Buffer] = set()

    def check(body: tuple[Stmt, ...], later: set[Buffer]) -> None:
        for s in body:
            reads = () if open_program and isinstance(s, Gemm) else read_buffers(s)
            for buffer in reads:
                owner = buffer.storage
                if owner.space is not Space.GLOBAL and owner not in written and owner not in later:
                    _unwritten(owner, s)
            if isinstance(s, Alloc):
                continue
            inside = later
            if isinstance(s, (For, While)):
                inside = later | {b.storage for t in statements(s.body) for b in written_buffers(t)}
            if isinstance(s, Gemm) and open_program:
                _gemm_operands(s, written, later)
            for inner in bodies(s):
                check(inner, inside)
            written.update(b.storage for b in written_buffers(s))

    check(program.body, set())


def _gemm_operands(s: Gemm, written: set[Buffer], later: set[Buffer]) -> None:
    for r in (s.a, s.b):
        owner = r.buffer.storage
        if owner not in written and owner not in later:
            _unwritten(owner, s)


def _unwritten(buffer: Buffer, s: Stmt) -> None:
    span: Span | None = s.span
    hint = f"T.clear({buffer.name}) first"
    if isinstance(s, Gemm) and s.c.buffer.storage == buffer:
        hint += ", or pass clear_accum=True"
    raise KernelError(
        f"{buffer.name} is read before anything is written to it",
        span,
        why=f"a {buffer.space} tile has unknown contents when it is allocated",
        help=hint,
        related=[("it is allocated here", buffer.span)] if buffer.span else (),
    )


def _pointers_told_apart(program: TileProgram) -> None:
    """Where a launch writes to a tensor over a pointer, it has no other tensor over that pointer.

    Barriers and waits are placed by tensor: between two that are the same memory there would be none.
    """
    pointers = any(isinstance(p.value, Var) and p.value.dtype.kind == "handle" for p in program.params)
    launches = (s for s in statements(program.body) if isinstance(s, Launch)) if pointers else ()
    for launch in launches:
        first: dict[Var, Buffer] = {}
        written: set[Var] = set()
        twice: dict[Var, tuple[Buffer, Stmt]] = {}
        for t in statements(launch.body):
            changed = [b.storage for b in written_buffers(t)]
            for b in (*changed, *(b.storage for b in read_buffers(t))):
                if b.base is not None and first.setdefault(b.base, b) != b:
                    twice.setdefault(b.base, (b, t))
            written.update(b.base for b in changed if b.base is not None)
        for base, (other, s) in twice.items():
            if base in written:
                _overlapping(first[base], other, s)


def _overlapping(one: Buffer, other: Buffer, s: Stmt) -> None:
    raise KernelError(
        f"{one.name} and {other.name} are the same memory, and one of them is written",
        s.span,
        why="both are tensors over one pointer; what is written through one could not be put in order with the other",
        help=f"make one tensor of the pointer, and others from it: T.view({one.name}, shape, dtype)",
        related=[(f"{b.name} is made here", b.span) for b in (one, other) if b.span],
    )


def used_dimensions(program: TileProgram) -> Iterator[Var]:
    """Symbolic dimensions of the tensor parameters, in order of first use."""
    seen: set[Var] = set()
    for buffer in program.tensors:
        for d in (*buffer.shape, *(buffer.strides or ())):
            for v in () if isinstance(d, int) else variables(d):
                if v not in seen:
                    seen.add(v)
                    yield v
