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

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

from ..dtypes import INT32
from ..expr import Buffer, Expr, Load, Space, Var, binary
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
    Stmt,
    Store,
    TileProgram,
)
from ..program.visit import buffers, mapped
from ..program.visit import read_storages as read
from ..program.visit import written_storages as written
from .halves import Halves
from .lending import lent
from .panels import Inseparable, Panels, fills, half, whole
from .teams import FRONT, OWN, fragments, needed, steps
from .totals import Added, added

PLAIN = (Alloc, Bind, Copy, Fill, Gemm, Parallel, Reduce)
TEAMS = (OWN, FRONT)


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
    if len(loops) != 1 or loops[0].stage or not all(isinstance(s, PLAIN) for s in steps(launch)):
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
    except Inseparable:
        return launch


def _products(loop: For) -> tuple[list[Buffer], list[Buffer]]:
    """The sums of products whose operand threads make in the loop, and the results of the other products."""
    made = {b for s in loop.body if fragments(read(s)) for b in written(s) if b.space is Space.SHARED}
    found = [s for s in loop.body if isinstance(s, Gemm)]
    sums = dict.fromkeys(s.c.buffer.storage for s in found if s.a.buffer.storage in made)
    return list(sums), list(dict.fromkeys(b for s in found if (b := s.c.buffer.storage) not in sums))


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

    @cached_property
    def panels(self) -> Panels:
        found = Panels.of(self.launch, self.loop, self.sums) if self.in_turn else Panels({})
        self.made |= dict.fromkeys(found.made())
        return found

    @cached_property
    def halves(self) -> Halves:
        return Halves(frozenset(self.sums), self.panels, self.instance)

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
        front = Front(self.group, frozenset(self.own))
        return lent(replace(self.launch, body=new, threads=threads, front=front))

    # Who does what.

    @cached_property
    def assigned(self) -> list[tuple[Stmt, str]]:
        """The loop's statements with the team of each; "" if it is for both, or for no threads.

        What is computed between two steps on a first product's result is for the team of the next one.
        """
        body = self.loop.body
        teams = [{self.turns[b] for b in read(s) | written(s) if b in self.turns} for s in body]
        if any(len(t) > 1 for t in teams):
            raise Inseparable
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
            if isinstance(s, Alloc) and s.buffer in self.panels.tiles:
                return
            if not isinstance(s, Alloc | Bind) and not fills(s):
                raise Inseparable
            yield from self.panels.split(s)
            return
        if (part := added(s)) is not None and part.total in self.totals:
            yield from self.part_of_total(s, part, teams[0])
            return
        halved = bool(touched & set(self.sums))
        for team in self.adding if halved else teams:
            for b in sorted(fragments(needed(s)) - set(self.sums), key=_order):
                yield from self.seen(b, team)
            if halved and self.in_turn:
                yield self.halves.of(s, team)
            else:
                yield from (self.named(t, team) for t in self.panels.split(s))
        made = fragments(written(s)) - set(self.sums)
        if halved and made:
            raise Inseparable
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
        yield from (*copies, replace(last, dst=whole(heard)))
        yield Parallel((i,), total.shape, (Store(mine, (i,), value),), span=self.loop.span)
        self.valid[total] = {OWN}

    def seen(self, b: Buffer, team: str) -> Iterator[Stmt]:
        """What brings a fragment to a team that does not have it as it is now."""
        if team in self.valid.setdefault(b, {team}):
            return
        if b.source is not None or not all(isinstance(d, int) for d in b.shape):
            raise Inseparable
        told = replace(b, name=f"{b.name}_to_{team}", space=Space.SHARED, number=b.number + self.number)
        other = next(t for t in TEAMS if t != team)
        self.made[told] = None
        yield Copy(whole(self.instance(b, other)), whole(told), span=b.span)
        yield Copy(whole(told), whole(self.instance(b, team)), span=b.span)
        self.valid[b] = {*self.valid[b], team}

    # Fragments.

    def instance(self, b: Buffer, team: str) -> Buffer:
        """A team's own copy of a fragment, or its part of the sums."""
        if (b, team) not in self.instances:
            new = b
            if b in self.sums and self.in_turn:
                new = replace(new, shape=(b.shape[0], half(b)))
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
                raise Inseparable
            return self.instance(b, team)

        def change(x: Expr) -> Expr:
            return x if isinstance(x, Var) else rebuilt(x, change, swapped)

        def body(b: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
            return tuple(mapped(t, change, body, swapped) for t in b)

        return body((s,))[0]


def _order(b: Buffer) -> tuple[str, int]:
    return b.name, b.number
