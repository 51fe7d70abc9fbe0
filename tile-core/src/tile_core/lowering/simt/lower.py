"""A plan for a SIMT target to a thread-level program: what each thread of a block does, element by element.

The result is a tile program again, without tile ops and ``T.Parallel``: fragments have become private arrays, shared
tiles flat buffers, and barriers are statements. So the interpreter runs it, and a backend prints it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from ...dtypes import INT32
from ...errors import Unsupported
from ...expr import Buffer, Expr, Load, Space, Var, binary, loads, substitute
from ...expr.intervals import Interval
from ...inference.plan import TilePlan
from ...layout.layout import Axis
from ...program import (
    Alloc,
    Assert,
    Assume,
    Atomic,
    AtomicTile,
    Bind,
    Break,
    Breakpoint,
    Continue,
    Copy,
    Fill,
    For,
    Gemm,
    If,
    Launch,
    Parallel,
    Print,
    Quantify,
    Reduce,
    Region,
    Scan,
    Stmt,
    Store,
    Sync,
    TileProgram,
    Transpose,
    While,
)
from ...program.visit import Change, buffers, mapped, statements
from ...verification.bounds import assumed, ranges_of
from ...verification.comparisons import Known
from ...verification.heard import Emitted
from ...verification.plans import of_code
from ...verification.refusal import refuse
from .across import lower_quantify, lower_reduce, lower_scan
from .arena import placed_tiles
from .barriers import Pending, UniformFor, UniformIf, UniformWhile, synchronised
from .boxes import BoxMap
from .context import Context, coordinate
from .elementwise import as_loop, lower_loop, parallel_loop
from .following import leaving, waiting
from .instructions import Instructions
from .late_sums import late_sums
from .matmul import lower_gemm
from .nest import iterations
from .pipeline import Pipeline, pipelines
from .pipelined import lower_pipelined
from .places import place, placed, tile
from .roles import Roles
from .settling import settled
from .staging import store_out
from .witness import emitted, heard

GENERIC = Instructions()


@dataclass(frozen=True)
class Lowered:
    """A thread-level program. For each launch: the parameters that describe tensors to the copy engine, how many
    neighbouring blocks share copies, how many blocks a core should hold (0: as many as fit), and what must hold
    when it is started (else the launch of a lowering without bulk engines must take its place). ``emitted``: launches with roles,
    as the verification room wants them.
    """

    program: TileProgram
    boxes: tuple[Mapping[BoxMap, Var], ...]
    sharing: tuple[int, ...]
    resident: tuple[int, ...]
    conditions: tuple[tuple[Expr, ...], ...]
    emitted: tuple[Emitted, ...] = ()


def lower(plan: TilePlan, instructions: Instructions = GENERIC) -> TileProgram:
    """The thread-level program of a plan. Without ``instructions`` it has nothing that the interpreter cannot run.

    Raises:
        Unsupported: the plan has a step that no thread-level form exists for, with its span.
    """
    return lower_for(plan, instructions).program


def lower_for(plan: TilePlan, instructions: Instructions) -> Lowered:
    """The thread-level program of a plan with what a launcher must know of it.

    Raises:
        Unsupported: as ``lower``.
        InternalError: what was lowered contradicts an obligation of such code.
    """
    instructions, ear = heard(instructions)
    launches = {id(s): _Launch(plan, s, instructions) for s in plan.program.launches}
    body = tuple(launches[id(s)].run() if isinstance(s, Launch) else s for s in plan.program.body)
    roles = [one.roles for one in launches.values()]
    made = zip(roles, (s for s in body if isinstance(s, Launch)), strict=True)
    beside = tuple(emitted(r, s, ear) for r, s in made if r is not None and r.copies_ahead)
    refuse(of_code(beside))
    return Lowered(
        replace(plan.program, body=body),
        tuple(r.maps if r else {} for r in roles),
        tuple(r.sharing.blocks if r and r.sharing else 1 for r in roles),
        tuple(r.resident if r else 0 for r in roles),
        tuple(tuple(r.conditions) if r else () for r in roles),
        beside,
    )


class _Launch:
    """Lowers one launch."""

    def __init__(self, plan: TilePlan, launch: Launch, instructions: Instructions) -> None:
        self.launch = launch
        self.roles: Roles | None = None
        self.threaded = bool(launch.thread_vars)
        thread = Var("thread", INT32, 900)
        self.context = Context(plan, launch, thread, instructions)
        self.context.ranges[thread] = Interval(0, launch.thread_count - 1)
        self.context.viewed = frozenset(b.storage for b in buffers(launch.body) if b.source is not None)
        for v, extent in zip(launch.vars, launch.grid, strict=True):
            self.context.ranges[v] = Interval(0, extent - 1 if isinstance(extent, int) else None)
        self.pipelines: dict[int, Pipeline] = {}
        known = Known(dict(ranges_of(launch)))
        for s in plan.program.body:
            known = assumed(known, s) if isinstance(s, Assume) else known
        self.context.known = known

    def run(self) -> Launch:
        self.roles = Roles.of(self.context, self.launch, self.block)
        if self.roles is not None:
            new = self.roles.run()
            return replace(new, body=(*self.context.allocations(self.roles.places.offsets), *new.body))
        self.pipelines = pipelines(self.context, self.launch)
        for p in self.pipelines.values():
            self.context.depths.update(p.depths)
        head = self.own_numbers()
        body = self.block(self.launch.body)
        body = settled(self.context, body)
        places = placed_tiles(self.context, body)
        body = synchronised(body, Pending(places.sharing))
        succession = self.context.instructions.succession
        body = leaving(succession, waiting(succession, (*head, *body)))
        count = self.launch.thread_count
        return replace(
            self.launch,
            threads=(count,),
            thread_vars=(self.context.thread,),
            body=(*self.context.allocations(places.offsets), *body),
            layouts=(),
        )

    def own_numbers(self) -> tuple[Stmt, ...]:
        """The user's thread numbers, from the linear one: the first dimension changes fastest."""
        out: list[Stmt] = []
        place: int = 1
        for v, extent in zip(self.launch.thread_vars, self.launch.threads, strict=False):
            number = binary("%", binary("//", self.context.thread, place), extent)
            self.context.ranges[v] = Interval(0, extent - 1)
            out.append(Bind(v, self.context.simple(number)))
            place *= extent
        return tuple(out)

    def block(self, body: Sequence[Stmt]) -> tuple[Stmt, ...]:
        return tuple(t for s in body for t in self.statement(s))

    def name(self, s: Stmt) -> str:
        return self.context.name_of(s)

    def statement(self, s: Stmt) -> Iterator[Stmt]:
        changed = self.roles.statement(s) if self.roles is not None else None
        if changed is not None:
            yield from changed
            return
        match s:
            case Parallel():
                yield from lower_loop(self.context, parallel_loop(self.name(s), s))
            case Copy() | Fill() | Transpose() | AtomicTile():
                yield from lower_loop(self.context, as_loop(self.context, self.name(s), s))
            case Gemm():
                yield from lower_gemm(self.context, self.name(s), s)
            case Reduce():
                yield from lower_reduce(self.context, self.name(s), s)
            case Scan():
                yield from lower_scan(self.context, self.name(s), s)
            case Quantify():
                yield from lower_quantify(self.context, self.name(s), s)
            case Alloc():
                yield from self.alloc(s)
            case Sync() | Break() | Continue():
                yield s
            case For() | While() | If():
                yield from self.control(s)
            case Breakpoint():
                raise Unsupported(
                    "breakpoint() works in the interpreter only", s.span, help="set TILE_INTERPRET=1"
                )
            case _:
                yield from self.elements(s)

    def alloc(self, s: Alloc) -> Iterator[Stmt]:
        """On-chip tiles exist from the start of the block; private scalars and arrays where they stand."""
        match s.buffer.space:
            case Space.SHARED:
                tile(self.context, s.buffer)
            case Space.FRAGMENT:
                if s.buffer.storage in self.context.layouts:  # nobody uses it otherwise
                    self.context.register_file(s.buffer)
            case _:
                yield s

    def control(self, s: For | While | If) -> Iterator[Stmt]:
        outside = self.context.known
        self.context.known = outside.having(dict(ranges_of(s)))
        yield from self.entered(s)
        self.context.known = outside

    def entered(self, s: For | While | If) -> Iterator[Stmt]:
        before, change = self.reachable(s)
        yield from before
        if self.threaded and not _has_tile_op(s):
            # the user's own thread-level code: what it does between barriers is its own business
            yield mapped(s, change, self.block)
            return
        match s:
            case For():
                self.count(s)
                late = late_sums(self.context, s)
                self.context.apart |= {name for sum in late for name in sum.reduces}
                for sum in late:
                    yield from sum.split(self.context)
                if id(s) in self.pipelines:
                    yield from lower_pipelined(self.context, s, self.pipelines[id(s)], self.name, self.block)
                else:
                    yield UniformFor(**_fields(mapped(s, change, self.block)), span=s.span)
                for sum in late:
                    yield from sum.joined(self.context)
            case While():
                if before:
                    raise Unsupported(
                        "a while condition reads a fragment", s.span, help="keep it in a T.alloc_var"
                    )
                yield UniformWhile(**_fields(mapped(s, change, self.block)), span=s.span)
            case If():
                yield UniformIf(**_fields(mapped(s, change, self.block)), span=s.span)

    def count(self, s: For) -> None:
        if s.var is not None and isinstance(s.extent, int) and s.step == 1:
            start = getattr(s.start, "value", None)
            if isinstance(start, int):
                self.context.ranges[s.var] = Interval(start, start + max(0, s.extent - 1))

    def reachable(self, s: Stmt) -> tuple[tuple[Stmt, ...], Change]:
        """Statements before ``s`` that bring fragments it reads where every thread sees them; and the change of expressions."""
        staged: dict[Buffer, Buffer] = {}
        before: list[Stmt] = []
        for b in _read_fragments(s):
            if b.storage not in staged:
                size = 1
                for d in b.storage.shape:
                    size *= d if isinstance(d, int) else 1
                staged[b.storage] = self.context.scratch(f"{b.storage.name}_seen", size, b.storage.dtype)
                before += store_out(self.context, b.storage, staged[b.storage], s.span)

        def change(x: Expr) -> Expr:
            return placed(self.context, x, staged)

        return tuple(before), change

    # Element statements outside of loops over elements: every thread does them for itself, or the first for all.

    def elements(self, s: Stmt) -> Iterator[Stmt]:
        before, change = self.reachable(s)
        yield from before
        match s:
            case Store() if s.buffer.space is Space.FRAGMENT:
                yield from self.fragment_store(s, change)
            case Store() if s.buffer.space in (Space.SHARED, Space.GLOBAL):
                where, at = place(self.context, s.buffer, [change(i) for i in s.indices], {})
                yield self.by_first(replace(s, buffer=where, indices=at, value=change(s.value)))
            case Atomic():
                yield from self.atomic(s, change)
            case Print():
                if any(isinstance(v, Region) for v in s.values):
                    raise Unsupported(
                        "a tile is printed inside a SIMT kernel",
                        s.span,
                        help="print single elements, or interpret",
                    )
                yield self.by_first(
                    replace(s, values=tuple(change(v) for v in s.values if isinstance(v, Expr)))
                )
            case Assume():
                self.context.known = assumed(self.context.known, s)
                yield mapped(s, change)
            case Store() | Bind() | Assert():
                yield mapped(s, change)
            case _:
                raise TypeError(type(s).__name__)

    def by_first(self, s: Stmt) -> Stmt:
        """A step of the whole block that one thread does; in thread-level code each thread does its own."""
        if self.threaded:
            return s
        return If(binary("==", self.context.thread, 0), (s,), span=s.span)

    def atomic(self, s: Atomic, change: Change) -> Iterator[Stmt]:
        where, at = place(self.context, s.buffer, [change(i) for i in s.indices], {})
        value = None if s.value is None else change(s.value)
        new = replace(s, buffer=where, indices=at, value=value)
        if s.result is None or self.threaded:
            yield self.by_first(new)
            return
        seen = self.context.scratch("previous", 1, s.buffer.dtype)
        zero = binary("*", self.context.thread, 0)
        first = If(binary("==", self.context.thread, 0), (new, Store(seen, (zero,), s.result)), span=s.span)
        again = Var(s.result.name, s.result.dtype, self.context.unique(s.result.name))
        yield substitute_result(first, s.result, again)
        yield Bind(s.result, Load(seen, (zero,)))

    def fragment_store(self, s: Store, change: Change) -> Iterator[Stmt]:
        """Every holder of the element writes it."""
        layout = self.context.layout(s.buffer)
        mine = iterations(self.context, layout, layout.shape)
        regs = self.context.register_file(s.buffer.storage)
        r = coordinate(layout, mine.index, Axis.REGISTER, self.context)
        hit: Expr | None = None
        for have, want in zip(mine.index, s.indices, strict=True):
            same = binary("==", have, change(want))
            hit = same if hit is None else binary("and", hit, same)
        value = Var("value", s.buffer.dtype, self.context.unique("value"))
        yield Bind(value, change(s.value))
        store = Store(regs, (r,), value, span=s.span)
        yield from mine.around((store,) if hit is None else (If(hit, (store,)),), s.span)


def substitute_result(s: If, old: Var, new: Var) -> If:
    atomic, store = s.then
    assert isinstance(atomic, Atomic) and isinstance(store, Store)
    return replace(
        s, then=(replace(atomic, result=new), replace(store, value=substitute(store.value, {old: new})))
    )


def _has_tile_op(s: Stmt) -> bool:
    kinds = (Copy, Fill, Gemm, Reduce, Scan, Transpose, AtomicTile, Quantify, Parallel)
    return any(isinstance(t, kinds) for t in statements((s,)))


def _read_fragments(s: Stmt) -> Iterator[Buffer]:
    from ...program.visit import expressions

    for x in expressions(s):
        yield from (e.buffer for e in loads(x) if e.buffer.space is Space.FRAGMENT)


def _fields(s: Stmt) -> dict[str, Any]:
    return {f.name: getattr(s, f.name) for f in fields(s) if f.name not in ("span", "uniform")}
