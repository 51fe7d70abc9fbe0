"""Counterexamples in the user's terms: which lines, which iterations, which blocks; as errors with the place in the user's file."""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import InternalError, KernelError, TileError
from ..expr import Buffer
from ..graph import Graph
from ..inference.schedule.model import MEET, RELAY, Dep
from ..inference.schedule.program import Schedule, Token
from ..span import Span
from .arrivals import Fault
from .clash import Clash
from .protocols import Counterexample
from .unfolded import Event

DONE = {  # of a dependence of which kind: what the later op may do, what the earlier one should have done
    "RAW": ("read", "has written it"),
    "WAR": ("write", "has read it"),
    "WAW": ("write", "has written it"),
}
REPORT = "this is a fault of tile, not of the kernel: please report it"


def overtaking(graph: Graph, schedule: Schedule, c: Counterexample) -> TileError:
    """Two ops of a scheduled loop, one of which comes too early, waits for ever, or laps the other."""
    ops = _Ops(graph, schedule)
    first, then = ops.named(c.first), ops.named(c.then)
    match c.reason:
        case Dep():
            may, should = DONE.get(c.reason.kind, ("touch", "has ended"))
            text = f"{then} may {may} {c.reason.storage} before {first} {should}"
        case Token():
            text = f"{then} may arrive at a slot of token {c.reason.name} that {first} has not waited for yet"
        case None:
            text = f"{first} and {then} wait for each other"
        case _:
            text = f"{then} waits for {first}, which never comes"
    apart = c.first[2] != c.then[2] and schedule.ops[c.first[0]].stream == schedule.ops[c.then[0]].stream
    where = f"in a loop of {c.trips} iteration{'s' * (c.trips > 1)}{', in another warp' * apart}"
    related = [(f"{first}", span)] if (span := ops.span(c.first)) and c.first[0] != c.then[0] else []
    return InternalError(text, ops.span(c.then), why=where, help=REPORT, related=related)


class _Ops:
    """Names and places of the ops of a loop."""

    def __init__(self, graph: Graph, schedule: Schedule) -> None:
        self.graph, self.schedule = graph, schedule

    def named(self, e: Event) -> str:
        op, iteration, *_ = e
        what = {RELAY: f"the end of {self._started(op)}", MEET: f"{op}"}.get(self.schedule.ops[op].kind, op)
        return f"{what} of iteration {iteration}"

    def span(self, e: Event) -> Span | None:
        node = self.graph.by_name.get(self._started(e[0]))
        return None if node is None else node.stmt.span

    def _started(self, op: str) -> str:
        return op.removesuffix(".done")


def at_sites(f: Fault) -> TileError:
    """A token or a fence of the code that is emitted."""
    return InternalError(f.text, f.span, help=REPORT)


def twice(b: Buffer, clash: Clash, span: Span | None) -> TileError:
    """Two blocks that write one element of a result."""
    first, second = (_numbers(x) for x in clash.blocks)
    element = f"{b.name}[{', '.join(map(str, clash.element))}]"
    given = f" of a launch with {_numbers(clash.sizes)}" if clash.sizes else ""
    if clash.sure:
        text = f"block {first} and block {second}{given} write {element}"
        return KernelError(
            text, span, why="which of them is last is chance", help="give each element one block"
        )
    text = f"block {first} and block {second}{given} would write {element}, if {' and '.join(clash.supposed) or 'they can'}"
    help = "declare a tensor whose elements differ: T.Tensor(..., distinct=True)" if clash.supposed else ""
    return KernelError(text, span, why="nothing says that this is not so", help=help)


def _numbers(values: Mapping[str, int]) -> str:
    return ", ".join(f"{name} = {n}" for name, n in values.items()) or "0"


def shared_place(name: str, first: tuple[int, ...], second: tuple[int, ...], span: Span | None) -> TileError:
    """Two elements of a tile that a layout puts in one place."""
    text = f"{name}[{', '.join(map(str, first))}] and {name}[{', '.join(map(str, second))}] are in one place"
    return InternalError(text, span, help=REPORT)
