"""Divides the work on one tile of the grid between two teams of threads: a launch in, the same launch for two teams out.

Where first products have rows for one group of threads only, and their results, turned into operands, are multiplied into sums
that fill the registers of several groups, all groups would do each product in narrow columns and wait for each other at each step.
Two ways to let them run apart:

- *in turn*: a loop's step has several first products. Each team does every other one and all that follows from it; both add up,
  each its half of the columns (FlashMLA, 2025, calls the order that comes of it seesaw).
- *in front*: there is one. A team of its own does it and what follows from it; the launch's own threads only add up.

What one team has in fragments and the other one reads goes over in shared memory. Fragments that both need exist twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from ..dtypes import INT32
from ..expr import Buffer, Expr, Load, Space, Var, binary, const
from ..expr.walk import rebuilt
from ..hardware import TargetInfo
from ..program import (
    Alloc,
    Bind,
    Copy,
    Fill,
    For,
    Front,
    Gemm,
    Launch,
    Parallel,
    Reduce,
    Region,
    Stmt,
    Store,
    TileProgram,
)
from ..program.visit import buffers, mapped
from .teams import FRONT, OWN, fragments, needed, read, steps, written
from .totals import Added, added

PLAIN = (Alloc, Bind, Copy, Fill, Gemm, Parallel, Reduce)
TEAMS = (OWN, FRONT)
REST = "rest"


def divided(program: TileProgram, info: TargetInfo) -> TileProgram:
    """The program with two teams in each launch that gains by them; the program itself if none does."""
    number = 1 + max((b.number for b in buffers(program.body)), default=0)
    body = tuple(
        _divided(s, info, number * (n + 1)) if isinstance(s, Launch) else s
        for n, s in enumerate(program.body)
    )
    same = all(a is b for a, b in zip(body, program.body, strict=True))
    return program if same else replace(program, body=body)


def _divided(launch: Launch, info: TargetInfo, number: int) -> Launch:
    rules = info.bulk
    if rules is None or launch.front or launch.thread_vars or launch.thread_count != 2 * rules.group:
        return launch
    loops = [s for s in launch.body if isinstance(s, For)]
    if len(loops) != 1 or not all(isinstance(s, PLAIN) for s in steps(launch)):
        return launch
    rows = {a.shape[0] for a in info.atoms if a.threads == rules.group}
    sums, firsts = _products(loops[0])
    products = [s for s in steps(launch) if isinstance(s, Gemm)]
    if not sums or not firsts or not all(s.mnk[0] in rows for s in products):
        return launch
    in_turn = len(firsts) % 2 == 0
    turns = {b: TEAMS[n % 2] if in_turn else FRONT for n, b in enumerate(firsts)}
    try:
        return _Division(launch, loops[0], tuple(sums), turns, in_turn, rules.group, number).done()
    except _Inseparable:
        return launch


def _products(loop: For) -> tuple[list[Buffer], list[Buffer]]:
    """The sums of products whose operand threads make in the loop, and the results of the other products."""
    made = {b for s in loop.body if fragments(read(s)) for b in written(s) if b.space is Space.SHARED}
    found = [s for s in loop.body if isinstance(s, Gemm)]
    sums = dict.fromkeys(s.c.buffer.storage for s in found if s.a.buffer.storage in made)
    return list(sums), list(dict.fromkeys(b for s in found if (b := s.c.buffer.storage) not in sums))


class _Inseparable(Exception):
    """A statement that cannot be one team's, or half of it each team's."""


@dataclass
class _Division:
    """``turns``: the team of each first product's result. ``in_turn``: whether the sums are halved. ``group``: a team's threads.

    ``made``: what has to be allocated. ``own``: fragments of the launch's own threads. ``valid``: the teams that have a fragment
    as it is now. ``instances``: each team's copy of a fragment.
    """

    launch: Launch
    loop: For
    sums: tuple[Buffer, ...]
    turns: dict[Buffer, str]
    in_turn: bool
    group: int
    number: int
    made: dict[Buffer, None] = field(default_factory=dict[Buffer, None])
    own: set[Buffer] = field(default_factory=set[Buffer])
    valid: dict[Buffer, set[str]] = field(default_factory=dict[Buffer, "set[str]"])
    instances: dict[tuple[Buffer, str], Buffer] = field(default_factory=dict[tuple[Buffer, str], Buffer])

    @cached_property
    def totals(self) -> frozenset[Buffer]:
        """Totals that begin at zero and that each team can carry a part of through the loop."""
        if not self.in_turn:
            return frozenset()
        zero = {
            s.dst.buffer
            for s in self.launch.body[: self.launch.body.index(self.loop)]
            if isinstance(s, Fill) and s.dst.whole and getattr(s.value, "value", None) == 0
        }
        steps = {f.total for s in self.loop.body if (f := added(s)) is not None and f.part is not None}
        others = (s for s in self.loop.body if (f := added(s)) is None or f.part is None)
        return frozenset(steps & zero - {b for s in others for b in read(s) | written(s)})

    def done(self) -> Launch:
        body, at = self.launch.body, self.launch.body.index(self.loop)
        carried = self._carried()
        before = [t for s in body[:at] for t in self.everywhere(s)]
        before += [t for b, team in carried for t in self.seen(b, team)]
        entered = {b: set(teams) for b, teams in self.valid.items()}
        inner = [t for s, team in self.assigned for t in self.step(s, (team,) if team else TEAMS)]
        inner += [t for b, team in carried for t in self.seen(b, team)]
        # there may be no iteration
        self.valid = {b: teams & entered.get(b, teams) for b, teams in self.valid.items()}
        after = [t for b in sorted(self.totals, key=_order) for t in self.together(b)]
        after += [t for s in body[at + 1 :] for t in self.somewhere(s)]
        allocs = [Alloc(b, span=b.span) for b in self.made]
        new = (*allocs, *before, replace(self.loop, body=tuple(inner)), *after)
        threads = (self.group,) if self.in_turn else self.launch.threads
        return replace(self.launch, body=new, threads=threads, front=Front(self.group, frozenset(self.own)))

    # Who does what.

    @cached_property
    def assigned(self) -> list[tuple[Stmt, str]]:
        """The loop's statements with the team of each; "" if it is for both, or for no threads.

        What is computed between two steps on a first product's result is for the team of the next one.
        """
        body = self.loop.body
        teams = [{self.turns[b] for b in read(s) | written(s) if b in self.turns} for s in body]
        if any(len(t) > 1 for t in teams):
            raise _Inseparable
        last = next(iter(next(t for t in reversed(teams) if t)))
        out: list[tuple[Stmt, str]] = []
        for n, s in enumerate(body):
            touched = fragments(read(s) | written(s))
            alone = touched and not touched & set(self.sums)
            out.append((s, next((next(iter(t)) for t in teams[n:] if t), last) if alone else ""))
        return out

    @cached_property
    def users(self) -> dict[Buffer, set[str]]:
        """The teams that use a fragment in the loop."""
        out: dict[Buffer, set[str]] = {}
        for s, team in self.assigned:
            for b in fragments(read(s) | written(s)):
                out.setdefault(b, set()).update({team} if team else self.adding)
        return out

    @property
    def adding(self) -> tuple[str, ...]:
        """The teams that add up."""
        return TEAMS if self.in_turn else (OWN,)

    def _carried(self) -> list[tuple[Buffer, str]]:
        """Fragments that a team finds as the iteration before left them."""
        changed: set[Buffer] = set()
        found: dict[tuple[Buffer, str], None] = {}
        for s, team in self.assigned:
            for t in (team,) if team else self.adding:
                for b in fragments(needed(s)) - set(self.sums) - self.totals - changed:
                    found[b, t] = None
            changed |= fragments(written(s))
        return [(b, t) for b, t in found if b in changed]

    # Statements.

    def everywhere(self, s: Stmt) -> Iterator[Stmt]:
        """A statement before the loop, for each team that uses what it makes."""
        made = fragments(written(s))
        if isinstance(s, Alloc) and s.buffer.space is Space.FRAGMENT:
            return
        if not made:
            yield from self.step(s, ())
        elif made & set(self.sums):
            yield from self.step(s, self.adding)
        else:
            teams = set[str]().union(*(self.users.get(b, {OWN}) for b in made))
            for team in TEAMS:
                if team in teams:
                    yield from self.step(s, (team,), keep=True)

    def somewhere(self, s: Stmt) -> Iterator[Stmt]:
        """A statement after the loop: for the teams that add up, or one that has what it reads."""
        touched = fragments(read(s) | written(s))
        if isinstance(s, Alloc) and s.buffer.space is Space.FRAGMENT:
            return
        if touched & set(self.sums):
            yield from self.step(s, self.adding)
        elif touched:
            known = [t for t in TEAMS if all(t in self.valid.get(b, {t}) for b in fragments(needed(s)))]
            yield from self.step(s, (known[0] if known else FRONT,))
        else:
            yield from self.step(s, ())

    def step(self, s: Stmt, teams: tuple[str, ...], keep: bool = False) -> Iterator[Stmt]:
        """A statement for some teams. With ``keep`` what other teams have of its results stays valid."""
        touched = fragments(read(s) | written(s))
        if not touched:
            if isinstance(s, Alloc) and s.buffer in self.panels:
                return
            if not isinstance(s, Alloc | Bind) and not _fills(s):
                raise _Inseparable
            yield from self.in_panels(s)
            return
        if (part := added(s)) is not None and part.total in self.totals:
            yield from self.part_of_total(s, part, teams[0])
            return
        halved = bool(touched & set(self.sums))
        for team in self.adding if halved else teams:
            for b in sorted(fragments(needed(s)) - set(self.sums), key=_order):
                yield from self.seen(b, team)
            if halved and self.in_turn:
                yield self.halved(s, team)
            else:
                yield from (self.named(t, team) for t in self.in_panels(s))
        made = fragments(written(s)) - set(self.sums)
        if halved and made:
            raise _Inseparable
        for b in made:
            self.valid[b] = {*teams} | (self.valid.get(b, set()) if keep else set())

    def part_of_total(self, s: Stmt, step: Added, team: str) -> Iterator[Stmt]:
        """A step of a total: one team adds to its part, the other one's part is multiplied by the same factor."""
        assert isinstance(s, Parallel)
        (store,) = s.body
        assert isinstance(store, Store)
        other = next(t for t in TEAMS if t != team)
        same = isinstance(step.old, Load)
        only = replace(s, body=(replace(store, value=step.old),))
        for t, one in ((team, s), *(() if same else ((other, only),))):
            for b in sorted(fragments(needed(one)) - self.totals, key=_order):
                yield from self.seen(b, t)
            yield self.named(one, t)

    def together(self, total: Buffer) -> Iterator[Stmt]:
        """After the loop one team has the sum of both parts."""
        heard = replace(total, name=f"{total.name}_heard", number=total.number + self.number)
        self.made[heard] = None
        self.own.add(heard)
        self.valid[total] = {FRONT}
        *copies, last = self.seen(total, OWN)
        assert isinstance(last, Copy)
        i = Var("i", INT32, total.number + self.number)
        mine = self.instance(total, OWN)
        value = binary("+", Load(mine, (i,)), Load(heard, (i,)))
        yield from (*copies, replace(last, dst=_all(heard)))
        yield Parallel((i,), total.shape, (Store(mine, (i,), value),), span=self.loop.span)
        self.valid[total] = {OWN}

    def seen(self, b: Buffer, team: str) -> Iterator[Stmt]:
        """What brings a fragment to a team that does not have it as it is now."""
        if team in self.valid.setdefault(b, {team}):
            return
        if b.source is not None or not all(isinstance(d, int) for d in b.shape):
            raise _Inseparable
        told = replace(b, name=f"{b.name}_to_{team}", space=Space.SHARED, number=b.number + self.number)
        other = next(t for t in TEAMS if t != team)
        self.made[told] = None
        yield Copy(_all(self.instance(b, other)), _all(told), span=b.span)
        yield Copy(_all(told), _all(self.instance(b, team)), span=b.span)
        self.valid[b] = {*self.valid[b], team}

    # Tiles.

    @cached_property
    def panels(self) -> dict[Buffer, dict[str, tuple[Buffer, int]]]:
        """Tiles of which each team's half of the sums takes some columns, as tiles of their own: each is free when it was read.

        By team (``REST``: columns that no sums take), with the first of the columns. What is free first is read first.
        """
        out: dict[Buffer, dict[str, tuple[Buffer, int]]] = {}
        for s in self.loop.body if self.in_turn else ():
            if isinstance(s, Gemm) and s.c.buffer in self.sums and self._splits(s.b.buffer, s):
                b, width = s.b.buffer, self.half(s.c.buffer)
                columns = {OWN: (0, width), FRONT: (width, width), REST: (2 * width, _columns(b) - 2 * width)}
                out[b] = {
                    name: (replace(b, name=f"{b.name}_{name}", shape=(b.shape[0], count)), first)
                    for name in (REST, OWN, FRONT)
                    if (first := columns[name][0], count := columns[name][1])[1]
                }
        for parts in out.values():
            self.made |= dict.fromkeys(tile for tile, _ in parts.values())
        return out

    def _splits(self, b: Buffer, product: Gemm) -> bool:
        """Whether a copy alone fills a tile, and products read all of it or, as this one, columns from the first on."""
        users = [s for s in self.loop.body if b in read(s) | written(s)]
        outside = [s for s in self.launch.body if s is not self.loop and not isinstance(s, Alloc)]
        filled = [
            s for s in users if isinstance(s, Copy) and _fills(s) and not s.dst.whole and _covers(s.dst)
        ]
        filled += [s for s in users if isinstance(s, Copy) and _fills(s) and s.dst.whole]
        others = [s for s in users if s not in filled and s is not product]
        return (
            b.space is Space.SHARED
            and b.source is None
            and b.ndim == 2
            and len(filled) == 1
            and not product.transpose_b
            and all(getattr(x, "value", None) == 0 for x in product.b.start)
            and product.b.extent == (b.shape[0], 2 * self.half(product.c.buffer))
            and all(_sums_along(s, b) for s in others)
            and not any(b in read(s) | written(s) for s in outside)
        )

    def in_panels(self, s: Stmt) -> Iterator[Stmt]:
        """A copy to a tile in panels, or a product of it, panel by panel."""
        match s:
            case Copy() if s.dst.buffer in self.panels:
                for tile, first in self.panels[s.dst.buffer].values():
                    yield replace(s, src=_columns_of(s.src, first, _columns(tile)), dst=_all(tile))
            case Gemm() if s.b.buffer in self.panels:
                clear = s.clear
                for tile, first in self.panels[s.b.buffer].values():
                    a = _columns_of(s.a, first, _columns(tile))
                    yield replace(s, a=a, b=_all(tile), clear=clear)
                    clear = False
            case _:
                yield s

    # Fragments.

    def instance(self, b: Buffer, team: str) -> Buffer:
        """A team's own copy of a fragment, or its part of the sums."""
        if (b, team) not in self.instances:
            new = b
            if b in self.sums and self.in_turn:
                new = replace(new, shape=(b.shape[0], self.half(b)))
            if team == FRONT:
                new = replace(new, name=f"{b.name}_front", number=b.number + self.number)
            else:
                self.own.add(new)
            self.instances[b, team] = new
            self.made[new] = None
        return self.instances[b, team]

    def named(self, s: Stmt, team: str) -> Stmt:
        """``s`` with this team's fragments."""

        def swapped(b: Buffer) -> Buffer:
            if b.space is not Space.FRAGMENT:
                return b
            if b.source is not None:
                raise _Inseparable
            return self.instance(b, team)

        def change(x: Expr) -> Expr:
            return x if isinstance(x, Var) else rebuilt(x, change, swapped)

        def body(b: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
            return tuple(mapped(t, change, body, swapped) for t in b)

        return body((s,))[0]

    def halved(self, s: Stmt, team: str) -> Stmt:
        """This team's half of a statement on all columns of the sums."""
        match s:
            case Fill() if s.dst.whole:
                return replace(s, dst=_all(self.instance(s.dst.buffer, team)))
            case Gemm() if (
                s.c.whole and s.a.buffer.storage not in self.sums and s.b.buffer.storage not in self.sums
            ):
                if s.b.buffer in self.panels:
                    b = _all(self.panels[s.b.buffer][team][0])
                else:
                    b = _part(s.b, self.half(s.c.buffer), team, 0 if s.transpose_b else -1)
                return replace(s, b=b, c=_all(self.instance(s.c.buffer, team)))
            case Copy() if s.src.whole and s.src.buffer in self.sums:
                dst = _part(s.dst, self.half(s.src.buffer), team, -1)
                return replace(s, src=_all(self.instance(s.src.buffer, team)), dst=dst)
            case Parallel() if len(s.vars) == 2:
                return self.half_of_loop(s, team)
            case _:
                raise _Inseparable

    def half(self, b: Buffer) -> int:
        columns = b.shape[-1]
        if b.ndim != 2 or not isinstance(columns, int) or columns % 2:
            raise _Inseparable
        return columns // 2

    def half_of_loop(self, s: Parallel, team: str) -> Stmt:
        """A loop over all elements of the sums, over this team's."""
        row, column = s.vars
        shapes = {b.shape for b in (read(s) | written(s)) & set(self.sums)}
        if shapes != {s.extents}:
            raise _Inseparable
        width = self.half(next(iter(set(self.sums) & (read(s) | written(s)))))
        at = binary("+", column, width if team == FRONT else 0)

        def change(x: Expr) -> Expr:
            match x:
                case Var():
                    return at if x is column else x
                case Load() if x.buffer in self.sums:
                    self._own_place(x.indices, row, column)
                    return replace(x, buffer=self.instance(x.buffer, team))
                case _:
                    return rebuilt(
                        x, change, lambda b: self.instance(b, team) if b.space is Space.FRAGMENT else b
                    )

        body: list[Stmt] = []
        for t in s.body:
            match t:
                case Store() if t.buffer in self.sums:
                    self._own_place(t.indices, row, column)
                    new = replace(t, buffer=self.instance(t.buffer, team), value=change(t.value))
                case Bind():
                    new = replace(t, value=change(t.value))
                case _:
                    raise _Inseparable
            body.append(new)
        return replace(s, extents=(s.extents[0], width), body=tuple(body))

    def _own_place(self, indices: Sequence[Expr], row: Var, column: Var) -> None:
        """Each element of the sums must be touched by its own iteration."""
        if len(indices) != 2 or indices[0] is not row or indices[1] is not column:
            raise _Inseparable


def _columns(b: Buffer) -> int:
    columns = b.shape[-1]
    if not isinstance(columns, int):
        raise _Inseparable
    return columns


def _covers(r: Region) -> bool:
    return r.extent == r.buffer.shape and all(getattr(x, "value", None) == 0 for x in r.start)


def _sums_along(s: Stmt, b: Buffer) -> bool:
    """Whether a product sums along the rows of a whole tile."""
    return isinstance(s, Gemm) and s.b.buffer is b and _covers(s.b) and s.transpose_b and not s.transpose_a


def _columns_of(r: Region, first: int, count: int) -> Region:
    """Some of the columns of a region."""
    n = [n for n, p in enumerate(r.point) if not p][-1]
    start, extent = list(r.start), list(r.extent)
    start[n], extent[n] = binary("+", start[n], first), count
    return replace(r, start=tuple(start), extent=tuple(extent), whole=False)


def _part(r: Region, width: int, team: str, dimension: int) -> Region:
    """This team's half of the columns of a region."""
    kept = [n for n, p in enumerate(r.point) if not p]
    n = kept[dimension]
    if (len(kept) != 2 and r.extent[n] != 2 * width) or r.extent[n] != 2 * width:
        raise _Inseparable
    start, extent = list(r.start), list(r.extent)
    start[n] = binary("+", start[n], width if team == FRONT else 0)
    extent[n] = width
    return replace(r, start=tuple(start), extent=tuple(extent), whole=False)


def _order(b: Buffer) -> tuple[str, int]:
    return b.name, b.number


def _fills(s: Stmt) -> bool:
    return isinstance(s, Copy) and s.src.buffer.space is Space.GLOBAL and s.dst.buffer.space is Space.SHARED


def _all(b: Buffer) -> Region:
    return Region(b, tuple(const(0) for _ in b.shape), b.shape, tuple(False for _ in b.shape), whole=True)
