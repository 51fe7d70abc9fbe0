"""A proof by z3 that no two blocks of a launch write one element: takes a statement and what stands around it.

Two copies of everything that an index depends on, with different block numbers and equal indices, must contradict each other.
Values that are read from tensors are functions of their indices; ``T.assume`` may say more of them. What a block reads from its
own memory can be anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import z3 as z3_  # pyright: ignore[reportMissingTypeStubs]

from ..expr import Binary, Buffer, Cast, Const, Expr, Load, Select, Space, Unary, Var, substitute, variables
from ..program import Assume, Bind, Copy, For, If, Launch, Parallel, Region, Stmt, Store
from ..program.visit import statements
from .certificates import Certificates
from .clash import Clash

z3: Any = z3_  # it has no types
RLIMIT = 20_000_000
MOST_FACTS = 4096  # instances of an assumption


@dataclass(frozen=True)
class Write:
    """``indices`` of the element that is written for any value of ``free`` (variable -> first value, extent, step) where all
    ``conditions`` hold.
    """

    indices: tuple[Expr, ...]
    free: Mapping[Var, tuple[Expr | int, Expr | int, int]]
    conditions: tuple[Expr, ...]


def writes(s: Stmt, around: Sequence[Stmt], b: Buffer) -> Write | None:
    """What a statement writes of ``b``; None if it is not a copy or a store of one element at a time."""
    free: dict[Var, tuple[Expr | int, Expr | int, int]] = {}
    conditions: list[Expr] = []
    for x in around:
        match x:
            case For(var=Var() as v):
                free[v] = x.start, x.extent, x.step
            case If():
                if any(t is s for t in statements(x.other)):
                    return None
                conditions.append(x.condition)
            case Launch():
                pass
            case _:
                return None
    match s:
        case Copy() if s.dst.buffer is b:
            indices, more = _of_region(s.dst)
            return Write(indices, free | more, tuple(conditions))
        case Store() if s.buffer is b:
            return Write(s.indices, free, tuple(conditions))
        case Parallel():
            free |= {v: (0, n, 1) for v, n in zip(s.vars, s.extents, strict=True)}
            return _of_loop(s.body, b, free, conditions, {})
        case _:
            return None


def _of_region(r: Region) -> tuple[tuple[Expr, ...], dict[Var, tuple[Expr | int, Expr | int, int]]]:
    """An element of a region, by variables of its own."""
    free: dict[Var, tuple[Expr | int, Expr | int, int]] = {}
    out: list[Expr] = []
    for n, (start, extent) in enumerate(zip(r.start, r.extent, strict=True)):
        v = Var(f"element{n}", start.dtype, 990_000 + n)
        free[v] = start, extent, 1
        out.append(v)
    return tuple(out), free


def _of_loop(
    body: Sequence[Stmt],
    b: Buffer,
    free: Mapping[Var, tuple[Expr | int, Expr | int, int]],
    conditions: Sequence[Expr],
    known: Mapping[Var, Expr],
) -> Write | None:
    known = dict(known)
    for s in body:
        match s:
            case Bind():
                known[s.var] = substitute(s.value, known)
            case If() if not s.other:
                found = _of_loop(s.then, b, free, [*conditions, substitute(s.condition, known)], known)
                if found is not None:
                    return found
            case Store() if s.buffer is b:
                return Write(tuple(substitute(i, known) for i in s.indices), free, tuple(conditions))
            case _:
                pass
    return None


def by_one_block(
    launch: Launch, b: Buffer, found: Sequence[Write], kept: Certificates | None = None
) -> Clash | bool | None:
    """True if no element of ``b`` is written by two blocks, whichever of these writes they do. Else a clash; None if undecided."""
    return _Prover(launch, b, kept).run(found)


@dataclass
class _Prover:
    launch: Launch
    buffer: Buffer
    written: Certificates | None = None
    context: Any = field(default_factory=lambda: z3.Context())
    opaque: int = 0
    read: dict[Any, tuple[Load, list[Any]]] = field(default_factory=dict[Any, "tuple[Load, list[Any]]"])
    sizes: dict[str, Any] = field(default_factory=dict[str, Any])

    def run(self, found: Sequence[Write]) -> Clash | bool | None:
        binds = dict(_bound(self.launch.body))
        facts = list(self.facts(binds))
        sides = [self.blocks(side) for side in (0, 1)]
        differ = z3.Or(
            [a != b for a, b in zip(sides[0].values(), sides[1].values(), strict=True)]
            or [z3.BoolVal(False, self.context)]
        )
        for first, second in product(found, repeat=2):
            solver = z3.Solver(ctx=self.context)
            solver.set("rlimit", RLIMIT)
            solver.add(*facts, differ)
            places: list[list[Any]] = []
            for side, w in enumerate((first, second)):
                names = dict(sides[side])
                solver.add(*self.ranges(names, side), *self.inside(w, names, side, binds))
                places.append([self.value(substitute(i, binds), names) for i in w.indices])
            solver.add(*(a == b for a, b in zip(*places, strict=True)))
            extents = [self.value(n, {}) for n in self.buffer.shape]
            solver.add(*(z3.And(a >= 0, a < n) for a, n in zip(places[0], extents, strict=True)))
            solver.add(*self.distinct())
            answer = solver.check()
            if self.written is not None:
                self.written.keep("no element by two blocks", solver, answer)
            if answer != z3.unsat:
                return self.clash(solver.model(), sides, places[0]) if answer == z3.sat else None
        return True

    def clash(self, model: Any, sides: Sequence[Mapping[Var, Any]], place: Sequence[Any]) -> Clash:
        def of(x: Any) -> int:
            return int(model.eval(x, model_completion=True).as_long())

        supposed = tuple(
            dict.fromkeys(
                f"{load.buffer.name}[{', '.join(str(of(i)) for i in at)}] = {of(value)}"
                for value, (load, at) in self.read.items()
            )
        )
        first, second = ({v.name: of(x) for v, x in side.items()} for side in sides)
        sizes = {name: of(x) for name, x in self.sizes.items()}
        sure = not supposed and not self.opaque
        return Clash((first, second), tuple(of(x) for x in place), sizes, supposed, sure)

    def distinct(self) -> Iterator[Any]:
        """Of two elements of a tensor whose elements differ none are equal, unless they are the same one."""
        known = [(value, load.buffer, at) for value, (load, at) in self.read.items() if load.buffer.distinct]
        for n, (a, b, at) in enumerate(known):
            for x, other, there in known[:n]:
                if other == b:
                    yield z3.Implies(a == x, z3.And([i == j for i, j in zip(at, there, strict=True)]))

    def blocks(self, side: int) -> dict[Var, Any]:
        return {v: self.number(f"{v.name}.{side}") for v in self.launch.vars}

    def ranges(self, names: Mapping[Var, Any], side: int) -> Iterator[Any]:
        for v, n in zip(self.launch.vars, self.launch.grid, strict=True):
            yield names[v] >= 0
            yield names[v] < self.value(n, names)

    def inside(self, w: Write, names: dict[Var, Any], side: int, binds: Mapping[Var, Expr]) -> Iterator[Any]:
        for v, (first, extent, step) in w.free.items():
            begin, count = (
                self.value(substitute(x, binds) if isinstance(x, Expr) else x, names) for x in (first, extent)
            )
            turn = self.number(f"{v.name}.{v.number}.{side}.turn")
            yield from (turn >= 0, turn < count)
            names[v] = begin + turn * step
        for c in w.conditions:
            yield self.value(substitute(c, binds), names) != 0

    def facts(self, binds: Mapping[Var, Expr]) -> Iterator[Any]:
        """Assumptions of the launch for all its blocks, where they depend on block numbers alone."""
        extents = dict(zip(self.launch.vars, self.launch.grid, strict=True))
        for s in self.launch.body:
            if not isinstance(s, Assume):
                continue
            x = substitute(s.condition, binds)
            used = list(dict.fromkeys(variables(x)))
            sizes = [extents.get(v) for v in used]
            if not all(isinstance(n, int) for n in sizes):
                continue
            count = 1
            for n in sizes:
                count *= n if isinstance(n, int) else 1
            if count <= MOST_FACTS:
                for at in product(*(range(n) for n in sizes if isinstance(n, int))):
                    names = {v: z3.IntVal(n, self.context) for v, n in zip(used, at, strict=True)}
                    yield self.value(x, names) != 0

    def number(self, name: str) -> Any:
        return z3.Int(name, self.context)

    def value(self, x: Expr | int, names: Mapping[Var, Any]) -> Any:
        """An expression as an integer; a condition is 0 or 1."""
        match x:
            case int():
                return z3.IntVal(x, self.context)
            case Const() if not x.dtype.is_float:
                return z3.IntVal(int(x.value), self.context)
            case Var():
                return (
                    names[x]
                    if x in names
                    else self.sizes.setdefault(x.name, self.number(f"{x.name}.{x.number}"))
                )
            case Cast() if not x.type.is_float and not x.value.dtype.is_float:
                return self.value(x.value, names)
            case Select():
                return z3.If(
                    self.value(x.condition, names) != 0,
                    self.value(x.then, names),
                    self.value(x.other, names),
                )
            case Unary(op="-"):
                return -self.value(x.value, names)
            case Unary(op="not"):
                return z3.If(
                    self.value(x.value, names) == 0, z3.IntVal(1, self.context), z3.IntVal(0, self.context)
                )
            case Binary() if not x.a.dtype.is_float:
                return self.binary(x.op, self.value(x.a, names), self.value(x.b, names))
            case Load():
                return self.load(x, names)
            case _:
                return self.anything()

    def binary(self, op: str, a: Any, b: Any) -> Any:
        truth = {"==": a == b, "!=": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}
        if op in truth or op in ("and", "or"):
            both = z3.And(a != 0, b != 0) if op == "and" else z3.Or(a != 0, b != 0)
            return z3.If(truth.get(op, both), z3.IntVal(1, self.context), z3.IntVal(0, self.context))
        match op:
            case "+" | "-" | "*":
                return a + b if op == "+" else a - b if op == "-" else a * b
            case "min" | "max":
                return z3.If((a < b) if op == "min" else (a > b), a, b)
            case "//" | "truncdiv" if z3.is_int_value(b) and b.as_long() > 0:
                # z3 rounds down; what is divided by truncation here counts something, and is not negative
                return a / b
            case "%" | "truncmod" if z3.is_int_value(b) and b.as_long() > 0:
                return a % b
            case _:
                return self.anything()

    def load(self, x: Load, names: Mapping[Var, Any]) -> Any:
        """An element of a tensor is a function of its place; what is in a block's own memory can be anything."""
        if x.buffer.space is not Space.GLOBAL:
            return self.anything()
        places = [self.value(i, names) for i in x.indices]
        sort = z3.IntSort(self.context)
        function = z3.Function(f"{x.buffer.name}.{x.buffer.number}", *[sort] * len(places), sort)
        if not places:
            return self.anything()
        value = function(*places)
        self.read[value] = x, places
        return value

    def anything(self) -> Any:
        self.opaque += 1
        return self.number(f"anything{self.opaque}")


def _bound(body: Sequence[Stmt]) -> Iterator[tuple[Var, Expr]]:
    """Scalars that have a name in a launch, by what they are made of; none that indices cannot depend on."""
    known: dict[Var, Expr] = {}
    for s in statements(body):
        if isinstance(s, Bind) and not s.var.dtype.is_float:
            known[s.var] = substitute(s.value, known)
            yield s.var, known[s.var]
