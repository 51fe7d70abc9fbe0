"""Elements of memory that statements read several times, or next to each other: read once, as vectors where they are whole.

Takes statements after loops are written out. Compilers behind WGSL may not do this by themselves: they would have to know that no
other invocation writes in between, and what an address is a multiple of.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import gcd

from tile_core.expr import (
    Binary,
    Buffer,
    Cast,
    Const,
    Expr,
    Load,
    Space,
    Var,
    const,
    loads,
    reads,
    rebuilt,
    walk,
)
from tile_core.expr.affine import Linear
from tile_core.expr.simplify import formed, summed
from tile_core.program import Alloc, Bind, Invoke, Place, Stmt, Store
from tile_core.program.visit import bodies, expressions, mapped

from .addresses import Addresses
from .instructions import MOVE
from .scalars import Scalars
from .storage import LANES

MEMORY = (Space.SHARED, Space.GLOBAL)
PRIVATE = (Space.LOCAL, Space.VAR)
ENOUGH = 2  # elements of a vector that must be wanted for it to be read whole
ZERO = const(0)

Key = tuple[Buffer, frozenset[tuple[Expr, int]]]


def read_once(body: Sequence[Stmt], addresses: Addresses, scalars: Scalars) -> tuple[Stmt, ...]:
    """``body`` with each run of private steps preceded by the loads that it needs."""
    return _Reuse(addresses, scalars).body(body)


@dataclass
class _Reuse:
    addresses: Addresses
    scalars: Scalars
    made: int = 5000  # numbers of the lowering's own variables are below

    def body(self, body: Sequence[Stmt]) -> tuple[Stmt, ...]:
        out: list[Stmt] = []
        run: list[Stmt] = []
        for s in body:
            if _private(s):
                run.append(s)
                continue
            out += self.run(run)
            run = []
            out.append(mapped(s, lambda x: x, self.body) if bodies(s) else s)
        return (*out, *self.run(run))

    def run(self, run: Sequence[Stmt]) -> Iterator[Stmt]:
        """A run of steps that change nothing but registers."""
        own = {s.var for s in run if isinstance(s, Bind)}
        found = _Elements()
        for load in _loads(run):
            if load.buffer.space in MEMORY and not _depends(load, own):
                found.add(load, self.form(load))
        held: dict[Load, Expr] = {}
        for group in found.groups.values():
            yield from self.vectors(group, held)
        for load, count in found.counts.items():
            if count > 1 and load not in held:
                self.made += 1
                var = Var("held", load.dtype, self.made)
                held[load] = var
                yield Bind(var, load)
        yield from (_with(s, held) for s in run) if held else run

    def form(self, load: Load) -> Linear | None:
        """The element's number as a sum whose terms are multiples of a vector; None if that is not known."""
        t = load.dtype
        if t.lanes > 1 or self.scalars.packed(t) or t.is_bool or load.buffer.source is not None:
            return None
        return _aligned(self.addresses.flat(load.buffer, load.indices), self.addresses)

    def vectors(self, group: Mapping[int, Load], held: dict[Load, Expr]) -> Iterator[Stmt]:
        """Vectors of elements that differ by a constant; ``group``: by that constant."""
        by_vector: dict[int, list[int]] = {}
        for at in sorted(group):
            by_vector.setdefault(at // LANES, []).append(at)
        for members in by_vector.values():
            if len(members) < ENOUGH:
                continue
            one = group[members[0]]
            self.made += 1
            array = Buffer("run", (LANES,), one.dtype, Space.LOCAL, number=self.made)
            size = LANES * one.dtype.bytes
            back = members[0] % LANES
            indices = (
                *one.indices[:-1],
                self.addresses.simple(Binary("-", one.indices[-1], const(back, one.indices[-1].dtype))),
            )
            yield Alloc(array)
            yield Invoke(
                f"{MOVE}_{size}",
                (Place(array, (ZERO,), "w", aligned=size), Place(one.buffer, indices, "r", aligned=size)),
            )
            for at in members:
                held[group[at]] = Load(array, (const(at % LANES),))


@dataclass
class _Elements:
    """Loads of a run: how often each is wanted, and those that differ by a constant together."""

    counts: dict[Load, int] = field(default_factory=dict[Load, int])
    groups: dict[Key, dict[int, Load]] = field(default_factory=dict[Key, dict[int, Load]])

    def add(self, load: Load, form: Linear | None) -> None:
        self.counts[load] = self.counts.get(load, 0) + 1
        if form is not None and self.counts[load] == 1:
            key = (load.buffer, frozenset(form.terms.items()))
            self.groups.setdefault(key, {})[form.constant] = load


def _private(s: Stmt) -> bool:
    match s:
        case Store():
            return s.buffer.space in PRIVATE
        case Bind():
            return True
        case _:
            return False


def _loads(run: Iterable[Stmt]) -> Iterator[Load]:
    for s in run:
        for x in expressions(s):
            yield from loads(x)


def _depends(load: Load, own: set[Var]) -> bool:
    """Whether an index changes within the run."""
    return any(reads(i) or any(e in own for e in walk(i) if isinstance(e, Var)) for i in load.indices)


def _with(s: Stmt, held: Mapping[Load, Expr]) -> Stmt:
    def change(x: Expr) -> Expr:
        if isinstance(x, Load) and x in held:
            return held[x]
        return rebuilt(x, change)

    return mapped(s, change)


def _aligned(x: Expr, addresses: Addresses) -> Linear | None:
    """``x`` as a constant and terms that are multiples of a vector, bits that are XORed in among them."""
    if isinstance(x, Binary) and x.op == "^":
        inner = _aligned(x.a, addresses)
        if inner is None or divisor(x.b) % LANES:
            return None
        low = inner.constant % LANES
        rest = summed(Linear(inner.constant - low, inner.terms), x)
        return Linear(low, {Binary("^", rest, x.b): 1})
    form = formed(x, addresses.range_of)
    out = Linear(form.constant)
    for term, factor in form.terms.items():
        part = (
            _aligned(term, addresses) if isinstance(term, Binary) and term.op == "^" and factor == 1 else None
        )
        if part is None and factor * divisor(term) % LANES:
            return None
        out = out.plus(part if part is not None else Linear(0, {term: factor}))
    return out


def divisor(x: Expr) -> int:
    """A number that divides ``x``; 0 divides only zero."""
    match x:
        case Const():
            return abs(int(x.value))
        case Cast() if x.value.dtype.is_integer:
            return divisor(x.value)
        case Binary(op="*"):
            return divisor(x.a) * divisor(x.b)
        case Binary(op="+" | "-" | "^" | "%"):
            return gcd(divisor(x.a), divisor(x.b))
        case _:
            return 1
