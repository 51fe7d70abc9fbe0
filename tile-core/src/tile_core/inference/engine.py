"""Strict, common, free: choose instructions, propagate to a fixpoint, try roots for what is left, keep the cheapest plan.

It ends because every step sets a tile or a loop and none is ever set again. Nothing depends on history or on set order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from itertools import product as cartesian
from math import gcd, prod

from ..expr import Space
from ..hardware import TargetInfo
from ..layout.convert import Conversion, Kind, convert
from ..layout.digits import lane
from ..layout.layout import Layout
from ..layout.partition import partitions
from .cost import Meter, Prices, price
from .model import (
    Change,
    Cost,
    Elementwise,
    GemmChoice,
    Multiply,
    Op,
    Prefix,
    Problem,
    Reduction,
    Solution,
    Tile,
)
from .rules import gemm, parallel, reduce, scan
from .shared import shared_layouts

ROOTS = 3  # partitions tried for a loop that nothing pins
COMBINATIONS = 32  # choices tried for the gemms of a launch together
SCANNED = 4096  # combinations that are looked at to find those
VECTOR_BITS = 128
SHUFFLE = 100  # bytes that a shuffle weighs when suggestions for a loop are compared

Gemms = Mapping[str, GemmChoice]
Moved = dict[tuple["str | Layout", ...], list[Change]]


@dataclass(slots=True)
class State:
    """One attempt: what is known so far and who said so."""

    known: dict[str, Layout] = field(default_factory=dict[str, Layout])
    writer: dict[str, str] = field(default_factory=dict[str, str])
    loops: dict[str, Layout] = field(default_factory=dict[str, Layout])

    def copy(self) -> State:
        return State(dict(self.known), dict(self.writer), dict(self.loops))

    def set(self, name: str, layout: Layout, by: str) -> None:
        self.known[name], self.writer[name] = layout, by


def solve(problem: Problem, info: TargetInfo) -> Solution:
    """The cheapest layouts found for a launch on a SIMT target. It always exists."""
    windows: dict[str, Mapping[int, tuple[int, int]]] = {}
    ops: list[Op] = []
    for op in problem.ops:
        if isinstance(op, Elementwise):
            op, window = parallel.widened(op)
            windows |= {op.name: window} if window else {}
        ops.append(op)
    problem = replace(problem, ops=tuple(ops))
    return replace(Engine.of(problem, info).infer(), windows=windows)


@dataclass(frozen=True, slots=True)
class Engine:
    """What all attempts share: the problem, who uses which tile, and prices already worked out."""

    problem: Problem
    info: TargetInfo
    users: dict[str, list[Op]]
    bits: dict[str, int]
    prices: Prices = field(default_factory=dict[tuple[str, Layout], Meter])
    alone: dict[str, Layout] = field(default_factory=dict[str, Layout])
    moved: Moved = field(default_factory=dict[tuple["str | Layout", ...], list[Change]])

    @staticmethod
    def of(problem: Problem, info: TargetInfo) -> Engine:
        users: dict[str, list[Op]] = {}
        for op in problem.ops:
            for tile in op.tiles:
                users.setdefault(tile.name, []).append(op)
        return Engine(problem, info, users, {name: t.bits for name, t in problem.tiles().items()})

    def infer(self) -> Solution:
        """Try combinations of gemm choices; one whose matrix work alone costs more than the best plan is skipped."""
        gemms = [op for op in self.problem.ops if isinstance(op, Multiply)]
        best: Solution | None = None
        tried = 0
        for choices in self._combinations(gemms):
            if best is not None and self._at_least(gemms, choices) >= best.cost.time:
                continue
            found = self._attempt({g.name: c for g, c in zip(gemms, choices, strict=True)})
            tried += 1
            if best is None or found.cost.key < best.cost.key:
                best = found
        assert best is not None
        return replace(best, shared=shared_layouts(best), tried=tried)

    def _combinations(self, gemms: Sequence[Multiply]) -> Iterator[tuple[GemmChoice, ...]]:
        options = [gemm.choices(g, self.problem.threads, self.info, self.problem.block) for g in gemms]
        yield from sorted(islice(cartesian(*options), SCANNED), key=_disagreement)[:COMBINATIONS]

    def _at_least(self, gemms: Sequence[Multiply], choices: Sequence[GemmChoice]) -> float:
        """What the gemms alone will cost: a bound that spares most combinations their attempt."""
        known = {g.c.name: c.c for g, c in zip(gemms, choices, strict=True)}
        named = {g.name: c for g, c in zip(gemms, choices, strict=True)}
        return self._price(gemms, State(known), named, ()).time

    def _attempt(self, gemms: Gemms) -> Solution:
        """One plan: strict, then common, then free until nothing is open."""
        state = State()
        for name, layout in self.problem.pinned.items():
            state.set(name, layout, "the user")
        for op in self.problem.ops:
            if isinstance(op, Multiply):
                for name, layout in gemm.strict(op, gemms[op.name]).items():
                    if name not in state.known:
                        state.set(name, layout, op.name)
            elif isinstance(op, Elementwise) and op.everywhere:
                # every thread of the block runs it: one iteration, as many copies as threads
                state.loops[op.name] = Layout((1,), (), (lane(self.problem.threads),))
        self._propagate(state, self.problem.ops)
        while (open_ := self._open(state)) is not None:
            state = self._free(state, open_, gemms)
        self._orphans(state)
        cost, changes = self._cost(state, self.problem.ops, gemms)
        return Solution(self.problem, self.info, state.known, state.loops, gemms, changes, cost)

    def _orphans(self, state: State) -> None:
        """Fragments that no op covers (read in part, or through an opaque index only) get a plain partition."""
        for op in self.problem.ops:
            for tile in op.fragments:
                if tile.name not in state.known:
                    state.set(tile.name, partitions(tile.shape, self.problem.threads)[0], op.name)

    def _propagate(self, state: State, start: Sequence[Op]) -> None:
        """Common: an op that learns something new wakes the users of those tiles. Each tile is set once."""
        queue = deque(start)
        while queue:
            op = queue.popleft()
            for name, layout in self._learn(op, state).items():
                state.set(name, layout, op.name)
                queue.extend(u for u in self.users[name] if u is not op and u not in queue)

    def _learn(self, op: Op, state: State) -> dict[str, Layout]:
        match op:
            case Multiply():
                return {}
            case Reduction() | Prefix():
                if op.result.name in state.known or op.result.space is not Space.FRAGMENT:
                    return {}
                layout = _made(op, state)
                return {} if layout is None else {op.result.name: layout}
            case Elementwise():
                if op.name not in state.loops:
                    found = parallel.loop_from(op, state.known)
                    if not parallel.settled(op, state.known, found):
                        return {}
                    state.loops[op.name] = self._best_loop(op, [loop for _, loop in found], state)
                return parallel.new_layouts(op, state.loops[op.name], state.known)

    def _best_loop(self, op: Elementwise, found: Sequence[Layout], state: State) -> Layout:
        """The suggestion that makes the fewest bytes move; the first of equals."""
        found = list(dict.fromkeys(found))
        if len(found) == 1:
            return found[0]
        accesses = tuple(a for a in op.held if a.tile.name in state.known)
        part = replace(op, accesses=accesses)

        def moved(loop: Layout) -> int:
            changes = parallel.changes(part, loop, state.known, {}, self.info.subgroup)
            return sum(c.conversion.shared_bytes + SHUFFLE * c.conversion.shuffles for c in changes)

        return min(found, key=moved)

    def _open(self, state: State) -> Op | None:
        """The largest op that still lacks a layout, bound ones (with serial loops) first, those without fragments last.

        A gemm says at once what it knows; for a fragment that it takes from anywhere others speak.
        """
        left = [op for op in self.problem.ops if not isinstance(op, Multiply) and self._lacks(op, state)]
        return max(left, key=_urgency, default=None)

    def _lacks(self, op: Op, state: State) -> bool:
        return op.name not in state.loops if isinstance(op, Elementwise) else self._unknown(op, state)

    def _unknown(self, op: Op, state: State) -> bool:
        return any(t.name not in state.known for t in op.fragments)

    def _free(self, state: State, op: Op, gemms: Gemms) -> State:
        """Try a few layouts for an op that nothing pins, each with all that follows from it; keep the cheapest."""
        if isinstance(op, Elementwise) and not op.fragments:
            state.loops[op.name] = self._alone(op)
            return state
        best: tuple[tuple[float, float, int], State] | None = None
        roots = self._roots(op, state)
        for layout in roots:
            trial = state.copy()
            if isinstance(op, Elementwise):
                trial.loops[op.name] = layout
            elif isinstance(op, Reduction | Prefix):
                trial.set(
                    op.source.name if op.source.name not in trial.known else op.result.name, layout, op.name
                )
            self._propagate(trial, self.problem.ops)
            if len(roots) == 1:
                return trial
            cost = self._partial_cost(trial, gemms)
            if best is None or cost < best[0]:
                best = (cost, trial)
        assert best is not None
        return best[1]

    def _alone(self, op: Elementwise) -> Layout:
        """The cheapest partition of a loop without fragments: no other op depends on it."""
        if op.name not in self.alone:

            def cost(layout: Layout) -> tuple[float, float, int]:
                return self._price((op,), State(loops={op.name: layout}), {}, ()).key

            self.alone[op.name] = min(self._roots(op, State()), key=cost)
        return self.alone[op.name]

    def _roots(self, op: Op, state: State) -> Sequence[Layout]:
        threads, subgroup = self.problem.threads, self.info.subgroup
        if isinstance(op, Reduction | Prefix):
            tile = op.source if op.source.name not in state.known else op.result
            return partitions(tile.shape, threads)[:ROOTS]
        assert isinstance(op, Elementwise)
        shape = op.extents[: len(op.extents) - op.serial] or (1,)
        plain: list[Layout] = []
        # vectors that this loop could use, and those that share its fragments
        near = [op, *(u for t in op.fragments for u in self.users[t.name] if isinstance(u, Elementwise))]
        memory = [a.tile for o in near for a in o.accesses if a.tile.space is not Space.FRAGMENT]
        wanted = {_vector(t) for t in memory} or {1}
        for vector in sorted(wanted, reverse=True):
            plain += partitions(shape, threads, vector)[:ROOTS]
        if any(a.tile.space is Space.FRAGMENT for a in op.accesses):
            plain += partitions(shape, threads, 1)[:ROOTS]
            plain += [p for p in partitions(shape, subgroup, 1)[:1] if subgroup < threads and len(shape) == 1]
        plain = [parallel.extended(op, p) for p in plain] if op.serial else plain
        return list(dict.fromkeys([*(loop for _, loop in parallel.loop_from(op, state.known)), *plain]))

    def _partial_cost(self, state: State, gemms: Gemms) -> tuple[float, float, int]:
        done = [op for op in self.problem.ops if not self._lacks(op, state) and not self._unknown(op, state)]
        return self._cost(state, done, gemms)[0].key

    def _cost(self, state: State, ops: Sequence[Op], gemms: Gemms) -> tuple[Cost, tuple[Change, ...]]:
        changes = tuple(c for op in ops for c in self._changes(op, state, gemms))
        used = {t.name for op in ops for t in op.fragments}
        known = {k: v for k, v in state.known.items() if k in used}
        return self._price(ops, State(known, {}, state.loops), gemms, changes), changes

    def _price(self, ops: Sequence[Op], state: State, gemms: Gemms, changes: tuple[Change, ...]) -> Cost:
        known, loops = state.known, state.loops
        return price(self.problem, ops, self.info, known, loops, gemms, changes, self.bits, self.prices)

    def _changes(self, op: Op, state: State, gemms: Gemms) -> list[Change]:
        match op:
            case Elementwise():
                loop = state.loops[op.name]
                key = (op.name, loop, *(state.known[t.name] for t in op.fragments))
                if key not in self.moved:
                    self.moved[key] = parallel.changes(
                        op, loop, state.known, state.writer, self.info.subgroup
                    )
                return self.moved[key]
            case Reduction() | Prefix():
                if op.result.space is not Space.FRAGMENT:
                    return []
                return self._change(op.result, _made(op, state), state.known[op.result.name], op.name, state)
            case Multiply():
                return [
                    c
                    for tile, need in gemm.needs(op, gemms[op.name])
                    if tile.space is Space.FRAGMENT
                    for c in self._change(tile, state.known[tile.name], need, op.name, state)
                ]

    def _change(
        self, tile: Tile, have: Layout | None, need: Layout | None, op: str, state: State
    ) -> list[Change]:
        if have is None or need is None:
            why = (
                "the operand must come from shared memory"
                if need is None
                else "a digit straddles two dimensions"
            )
            found = Conversion(Kind.SHARED, shared_bytes=tile.bytes, reason=why)
        else:
            found = convert(have, need, tile.bits, self.info.subgroup)
        return [] if found.free else [Change(tile, op, state.writer.get(tile.name, "its producer"), found)]


def _made(op: Reduction | Prefix, state: State) -> Layout | None:
    """The layout in which a reduction or scan leaves its result."""
    source = state.known.get(op.source.name)
    if source is None:
        return None
    if isinstance(op, Reduction):
        return reduce.result_layout(source, op.dim, op.kept)
    return scan.result_layout(op, source)


def _disagreement(choices: Sequence[GemmChoice]) -> tuple[int, int]:
    """Combinations in which all gemms split the warps alike come first, balanced splits before lopsided ones."""
    return len({c.warps for c in choices}), sum(abs(c.warps[0] - c.warps[1]) for c in choices)


def _urgency(op: Op) -> tuple[bool, bool, int]:
    if isinstance(op, Elementwise):
        return bool(op.fragments), op.serial > 0, prod(op.extents)
    return True, False, max(prod(t.shape) for t in op.tiles)


def _vector(tile: Tile) -> int:
    """Elements of the widest access, of 16 bytes, that the tile's alignment allows."""
    width = max(1, VECTOR_BITS // tile.bits)
    return gcd(width, tile.align) if tile.align else width
