"""The tile program: what a kernel does, before anything is decided about a target.

All nodes are frozen values with structural equality; a span never takes part in it. Statements are grouped as tile ops
(done by a whole block), element statements (inside ``Parallel``, or done by each thread) and control.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import Any

from ..dtypes import DType
from ..expr import Buffer, Expr, Var
from ..span import Span

Extent = int | Expr


@dataclass(frozen=True)
class Region:
    """A box of a buffer: ``start`` and ``extent`` for each dimension.

    ``point`` marks dimensions that were indexed by a single value; they do not count in ``shape``.
    ``whole``: the user named the buffer and gave no index.
    """

    buffer: Buffer
    start: tuple[Expr, ...]
    extent: tuple[Extent, ...]
    point: tuple[bool, ...]
    whole: bool = False
    span: Span | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not len(self.start) == len(self.extent) == len(self.point) == self.buffer.ndim:
            raise ValueError(
                f"region of {self.buffer.name} has {len(self.start)} ranges, not {self.buffer.ndim}"
            )

    @property
    def shape(self) -> tuple[Extent, ...]:
        """The extents of the dimensions that count."""
        return tuple(e for e, p in zip(self.extent, self.point, strict=True) if not p)

    @property
    def dtype(self) -> DType:
        return self.buffer.dtype


@dataclass(frozen=True)
class Stmt:
    """One step of a kernel."""

    span: Span | None = field(default=None, compare=False, repr=False, kw_only=True)

    def __getstate__(self) -> dict[str, Any]:
        """What pickle keeps: the fields, not what passes have found and left with them."""
        return {name: value for name, value in self.__dict__.items() if not name.startswith("_")}


# Tile ops: done once, by all threads of a block together.


@dataclass(frozen=True)
class TileOp(Stmt):
    """A step that a whole block does together."""


@dataclass(frozen=True)
class Copy(TileOp):
    """``dst[...] = src[...]`` with conversion. Both shapes are equal after leading ones are dropped.

    Elements of ``src`` outside its buffer read as zero; elements of ``dst`` outside its buffer are not written.
    ``hints`` are wishes that a target may ignore.
    In an open program (no ``T.Kernel``) the two sides may be whole buffers of different shapes.
    """

    src: Region
    dst: Region
    hints: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class Fill(TileOp):
    """Every element of ``dst`` becomes ``value`` (of the buffer's type)."""

    dst: Region
    value: Expr


@dataclass(frozen=True)
class Gemm(TileOp):
    """``c += op(a) @ op(b)``, or ``c = ...`` when ``clear``. Products are summed in the type of ``c``.

    After ``transpose_a`` and ``transpose_b`` the shapes are (M, K), (K, N), (M, N).
    ``policy`` says how warps split M and N: ``square``, ``full_row`` or ``full_col``.
    """

    a: Region
    b: Region
    c: Region
    transpose_a: bool = False
    transpose_b: bool = False
    policy: str = "square"
    clear: bool = False
    hints: tuple[tuple[str, Any], ...] = ()

    @property
    def mnk(self) -> tuple[Extent, Extent, Extent]:
        m, n = self.c.shape
        k = self.a.shape[0 if self.transpose_a else 1]
        return m, n, k


REDUCTIONS = ("sum", "max", "min", "absmax", "abssum", "bitand", "bitor", "bitxor", "any", "all")


@dataclass(frozen=True)
class Reduce(TileOp):
    """``dst = reduce(src, axis)``; with ``clear`` false the old value of ``dst`` takes part.

    ``dst`` has the shape of ``src`` without ``axis``, or with 1 there. Sums are made in the type of ``dst``.
    max, min and absmax skip NaN unless ``propagate_nan``.
    """

    kind: str
    src: Region
    dst: Region
    axis: int
    clear: bool = True
    propagate_nan: bool = False

    def __post_init__(self) -> None:
        if self.kind not in REDUCTIONS:
            raise ValueError(self.kind)


@dataclass(frozen=True)
class Scan(TileOp):
    """Inclusive prefix ``sum`` or ``max`` of ``src`` along ``axis`` into ``dst`` (same shape, may be ``src``)."""

    kind: str
    src: Region
    dst: Region
    axis: int
    reverse: bool = False


@dataclass(frozen=True)
class Transpose(TileOp):
    """``dst[..., j, i] = src[..., i, j]``."""

    src: Region
    dst: Region


@dataclass(frozen=True)
class AtomicTile(TileOp):
    """``dst[...] op= value`` for every element, each atomically; ``op`` is add, max, min, or, and.

    Elements of ``dst`` outside its buffer are not touched.
    """

    op: str
    dst: Region
    value: Region
    order: str = "relaxed"


@dataclass(frozen=True)
class Quantify(TileOp):
    """``result`` (a bool) = any or all elements of ``src`` are nonzero."""

    kind: str
    src: Region
    result: Var


# Element statements: one element at a time.


@dataclass(frozen=True)
class Store(Stmt):
    """``buffer[indices] = value``; the value has the buffer's type. ``indices`` is () for a VAR."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    value: Expr


@dataclass(frozen=True)
class Bind(Stmt):
    """``var`` is the value of ``value`` here and now, until the end of the enclosing body."""

    var: Var
    value: Expr


@dataclass(frozen=True)
class Atomic(Stmt):
    """``buffer[indices] op= value`` atomically; ``result`` is the value before, if it is wanted.

    ``op`` is add, max, min, or, and, xor, load (value is None) or store.
    """

    op: str
    buffer: Buffer
    indices: tuple[Expr, ...]
    value: Expr | None
    order: str = "relaxed"
    result: Var | None = None


# Control.


@dataclass(frozen=True)
class Alloc(Stmt):
    """``buffer`` begins to exist here, with unknown contents, or as a table of ``values`` that nobody writes.

    ``offset``: the byte of the block's shared memory where it begins, once lowering has decided that; tiles that are never needed
    at the same time may share bytes.
    """

    buffer: Buffer
    offset: int | None = None
    values: tuple[int, ...] = ()


@dataclass(frozen=True)
class Parallel(Stmt):
    """``body`` for every value of ``vars`` in ``extents``, in no order: iterations must not depend on each other."""

    vars: tuple[Var, ...]
    extents: tuple[Extent, ...]
    body: tuple[Stmt, ...]
    hints: tuple[tuple[str, Any], ...] = ()


LOOPS = ("serial", "unroll", "vectorized", "pipelined")


@dataclass(frozen=True)
class For(Stmt):
    """``for var in range(start, start + extent * step, step)``; ``kind`` says how it may be run, not what it means.

    ``var`` is None in an open program: the loop was written without an index and inference gives it one.
    ``num_stages`` (pipelined): iterations in flight; ``stage`` and ``order`` pin a schedule by hand, -1 pins nothing.
    """

    var: Var | None
    start: Expr
    extent: Extent
    body: tuple[Stmt, ...]
    kind: str = "serial"
    step: int = 1
    num_stages: int = 0
    stage: tuple[int, ...] = ()
    order: tuple[int, ...] = ()
    hints: tuple[tuple[str, Any], ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in LOOPS or self.step == 0:
            raise ValueError(f"{self.kind} loop with step {self.step}")


@dataclass(frozen=True)
class While(Stmt):
    condition: Expr
    body: tuple[Stmt, ...]


@dataclass(frozen=True)
class If(Stmt):
    condition: Expr
    then: tuple[Stmt, ...]
    other: tuple[Stmt, ...] = ()


@dataclass(frozen=True)
class Break(Stmt):
    """Leave the innermost For or While."""


@dataclass(frozen=True)
class Continue(Stmt):
    """Go on with the next iteration of the innermost For or While."""


@dataclass(frozen=True)
class Sync(Stmt):
    """All threads of the block wait for each other; or only ``threads`` of them, which meet at barrier ``number``."""

    number: int | Expr = 0
    threads: int = 0


@dataclass(frozen=True)
class Print(Stmt):
    """Print a message, then values (expressions, or regions with all their elements)."""

    message: str
    values: tuple[Expr | Region, ...] = ()


@dataclass(frozen=True)
class Assert(Stmt):
    """Stop the kernel with ``message`` if the condition is false."""

    condition: Expr
    message: str = ""


@dataclass(frozen=True)
class Assume(Stmt):
    """A fact that the prover may use; the interpreter checks it."""

    condition: Expr


@dataclass(frozen=True)
class Breakpoint(Stmt):
    """Open the debugger here. Interpreter only."""


# What only thread-level programs have: lowering makes them, a target's prelude gives them a meaning.

ACCESSES = ("r", "w", "rw")


@dataclass(frozen=True)
class Place:
    """The address of ``buffer[indices]``, as an argument of an ``Invoke``; ``access`` is what the call does there.

    ``type``: the type pointed to, in the target's language, if it is not the buffer's. ``window``: the address is a number in
    the block's shared memory. ``aligned``: bytes that the address is a multiple of, because the call relies on it (0: it does not).
    """

    buffer: Buffer
    indices: tuple[Expr, ...]
    access: str = "r"
    type: str = ""
    window: bool = False
    aligned: int = 0

    def __post_init__(self) -> None:
        if self.access not in ACCESSES:
            raise ValueError(f"{self.buffer.name} is accessed {self.access!r}, not one of {ACCESSES}")


@dataclass(frozen=True)
class Invoke(Stmt):
    """Call a function of the target's prelude, such as a matrix instruction or a wait; ``result`` becomes its value.

    The interpreter does not know these functions: a program with an ``Invoke`` runs on its target, or in the target's emulator.
    """

    function: str
    arguments: tuple[Expr | Place, ...] = ()
    result: Var | None = None


# The whole.


@dataclass(frozen=True)
class Front:
    """A second team of ``threads`` beside the launch's own. ``own``: fragments of these; all others are the second team's."""

    threads: int
    own: frozenset[Buffer]


@dataclass(frozen=True)
class Launch(Stmt):
    """One grid of blocks. ``body`` runs once in each block.

    ``vars`` are the block numbers, one for each extent of ``grid``, the first changing fastest.
    ``thread_vars`` is empty unless the kernel asked for thread numbers; then statements outside tile ops and
    ``Parallel`` are done by each thread for itself.
    ``front``: a second team of threads, which does statements of its own (inference/division.py).
    ``layouts`` are layouts the user pinned, by buffer. ``swizzle`` is (panel size, order) of the block numbers or None.
    """

    vars: tuple[Var, ...]
    grid: tuple[Extent, ...]
    threads: tuple[int, ...]
    body: tuple[Stmt, ...]
    thread_vars: tuple[Var, ...] = ()
    layouts: tuple[tuple[Buffer, Any], ...] = ()
    swizzle: tuple[int, str] | None = None
    threads_given: bool = True
    front: Front | None = None

    @property
    def thread_count(self) -> int:
        return prod(self.threads)


@dataclass(frozen=True)
class Param:
    """A parameter of the kernel: a tensor, a scalar or a pointer, in the order of the signature."""

    name: str
    value: Buffer | Var
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def tensor(self) -> Buffer | None:
        return self.value if isinstance(self.value, Buffer) else None


@dataclass(frozen=True)
class TileProgram:
    """A kernel: parameters, then one or more launches (with the allocation of workspaces before them).

    ``outputs`` are the numbers of the parameters that the runtime allocates and returns.
    ``is_open``: written without ``T.Kernel``; inference must complete it before it has a meaning.
    """

    name: str
    params: tuple[Param, ...]
    body: tuple[Stmt, ...]
    outputs: tuple[int, ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def is_open(self) -> bool:
        return not any(isinstance(s, Launch) for s in self.body)

    @property
    def launches(self) -> tuple[Launch, ...]:
        return tuple(s for s in self.body if isinstance(s, Launch))

    @property
    def tensors(self) -> tuple[Buffer, ...]:
        return tuple(p.value for p in self.params if isinstance(p.value, Buffer))
