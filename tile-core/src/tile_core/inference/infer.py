"""From a tile program to its plan for one target: layouts, partitions, instructions, moves and placements."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from ..errors import Unsupported
from ..expr import Buffer
from ..graph import Graph, build
from ..hardware import TargetInfo
from ..layout.layout import Layout
from ..layout.partition import idle_threads
from ..program import Launch, TileProgram
from ..recommendation.recommend import threads as recommended_threads
from .division import divided
from .engine import solve
from .model import Change, Cost, Elementwise, GemmChoice, Multiply, Solution
from .overlap import overlapped
from .placement import placements
from .plan import Move, TilePlan
from .problem import LaunchProblem, problems
from .rules.parallel import leading
from .schedule.engines import COPY
from .schedule.pins import check_pins
from .teams import FRONT


def infer(program: TileProgram, info: TargetInfo, optimal: bool = False) -> TilePlan:
    """The plan of ``program`` on the target that ``info`` describes.

    ``optimal``: a solver looks for better schedules of loops than the search finds.
    Launches that leave the number of threads open get one. It never fails for layout reasons: what does not fit is moved.

    Raises:
        Unsupported: a block has more threads than the target allows.
        KernelError: a pinned layout cannot hold its buffer, a gemm's tiles are not of known two-dimensional shape, or a
            pipelined loop wants more stages than shared memory holds, or stages that are no schedule.
    """
    threads = recommended_threads(program, info)
    program = _with_threads(program, threads)
    _check_threads(program, info)
    for_two = divided(program, info)
    if for_two is not program and _runs_apart(plan := _inferred(for_two, info, threads, optimal)):
        return plan
    return _inferred(program, info, threads, optimal)


def _runs_apart(plan: TilePlan) -> bool:
    """Whether the copy engine fills the tiles of teams, whatever tensors a launch is given."""
    copies = (*plan.bulk.values(), *plan.leads.values())
    streams = [s.streams for s in plan.schedules.values()]
    ahead = any(COPY in s and FRONT in s for s in streams)
    return ahead and not any(c.conditions for c in copies) and not plan.moves


def _inferred(program: TileProgram, info: TargetInfo, threads: int, optimal: bool) -> TilePlan:
    graph = build(program)
    check_pins(graph)
    plan = TilePlan(program, info, graph, placements=placements(graph, info))
    if not info.simt:
        return replace(plan, notes=tuple(_refused(program, info)))
    answer = _Answer()
    for launch in problems(graph, threads):
        answer.take(launch, solve(launch.having(answer.layouts), info), graph)
    plan = replace(
        plan,
        layouts=answer.layouts,
        loops=answer.loops,
        atoms=answer.atoms,
        moves=tuple(answer.moves),
        placements=placements(graph, info, answer.atoms),
        notes=tuple(answer.notes),
        operands=answer.operands,
        windows=answer.windows,
        costs=answer.costs,
    )
    return overlapped(plan, optimal=optimal)


def _with_threads(program: TileProgram, threads: int) -> TileProgram:
    """The program with the number of threads filled in where the user left it open."""
    if all(launch.threads_given for launch in program.launches):
        return program
    body = tuple(
        replace(s, threads=(threads,), threads_given=True)
        if isinstance(s, Launch) and not s.threads_given
        else s
        for s in program.body
    )
    return replace(program, body=body)


def _check_threads(program: TileProgram, info: TargetInfo) -> None:
    for launch in program.launches if info.simt else ():
        if launch.thread_count > info.max_threads:
            raise Unsupported(
                f"{info.target} has blocks of at most {info.max_threads} threads, not {launch.thread_count}",
                launch.span,
                help=f"write T.Kernel(..., threads={info.max_threads}) or fewer: a thread may work on several elements",
            )


def _refused(program: TileProgram, info: TargetInfo) -> Iterator[str]:
    """Wishes that a target without threads has no use for."""
    for launch in program.launches:
        for buffer, _ in launch.layouts:
            yield f"the layout pinned for {buffer.name} is not used: {info.target} keeps a tile in one thread of control"


@dataclass(slots=True)
class _Answer:
    """Gathers the solutions of all launches, by buffer and node instead of by tile and op."""

    layouts: dict[Buffer, Layout] = field(default_factory=dict[Buffer, Layout])
    loops: dict[str, Layout] = field(default_factory=dict[str, Layout])
    atoms: dict[str, GemmChoice] = field(default_factory=dict[str, GemmChoice])
    moves: list[Move] = field(default_factory=list[Move])
    notes: list[str] = field(default_factory=list[str])
    operands: dict[str, Layout] = field(default_factory=dict[str, Layout])
    windows: dict[str, dict[int, tuple[int, int]]] = field(
        default_factory=dict[str, "dict[int, tuple[int, int]]"]
    )
    costs: dict[str, Cost] = field(default_factory=dict[str, Cost])

    def take(self, launch: LaunchProblem, found: Solution, graph: Graph) -> None:
        buffers = launch.tiles.buffers
        for name, layout in (*found.fragments.items(), *((n, c.layout) for n, c in found.shared.items())):
            if name in buffers:
                self.layouts[buffers[name]] = layout
            else:
                self.operands[name] = layout  # a fragment between an op and a region
        for op in found.problem.ops:
            if isinstance(op, Elementwise):
                self.loops[op.name] = leading(op, found.loops[op.name])
        self.atoms.update(found.gemms)
        self.windows.update((n, dict(w)) for n, w in found.windows.items())
        self.costs[found.problem.name] = found.cost
        self.moves += [_move(c, buffers, graph) for c in found.changes]
        self.notes += _notes(launch, found)


def _move(c: Change, buffers: dict[str, Buffer], graph: Graph) -> Move:
    buffer = buffers.get(c.tile.name)
    nodes = [graph.by_name.get(n.partition(".")[0]) for n in (c.op, c.before)]
    span, before = (None if n is None else n.stmt.span for n in nodes)
    return Move(buffer, c.op, c.before, c.conversion, span, before, "" if buffer else c.tile.name)


def _notes(launch: LaunchProblem, found: Solution) -> Iterator[str]:
    """What the user may want to know, in program order."""
    for name, reason in launch.left:
        yield f"{name}: no layout was chosen, {reason}; its iterations are dealt to the threads one by one"
    for op in found.problem.ops:
        if isinstance(op, Multiply):
            yield from _gemm_notes(op, found)
        if isinstance(op, Elementwise) and (window := found.windows.get(op.name)):
            ranges = ", ".join(f"{a} <= i{k} < {a + n}" for k, (a, n) in window.items())
            yield f"{op.name}: runs over the whole fragment where {ranges}, so that nothing moves"
    if free := [name for name, choice in found.shared.items() if choice.passes and not choice.conflicts]:
        yield f"{', '.join(free)}: read and written without bank conflicts"
    for name, choice in found.shared.items():
        if choice.conflicts:
            yield f"{name}: {choice.conflicts} bank conflicts per access of a warp are left ({choice.why})"
        elif choice.why.startswith("rows padded"):
            yield f"{name}: {choice.why} elements, so that its readers meet no bank conflicts"


def _gemm_notes(op: Multiply, found: Solution) -> Iterator[str]:
    choice = found.gemms[op.name]
    m, n, k = op.shape
    a, b, c = op.types
    if choice.atom is None:
        yield (
            f"{op.name}: no instruction of {found.info.target} multiplies {a} by {b} into {c} for {m} x {n} x {k} with "
            f"{found.problem.threads} threads; plain multiply-adds do it"
        )
        return
    if choice.atom.types[:2] != (a, b):
        yield f"{op.name}: products are made in {choice.atom.types[0]}; precision='ieee' keeps all bits of {a}"
    if choice.c.padded:
        yield f"{op.name}: {m} x {n} is padded to {choice.c.box[0]} x {choice.c.box[1]} for {choice.atom.name}"
    if idle := idle_threads(choice.c, found.problem.threads):
        yield f"{op.name}: {idle} threads have no part of the result"
