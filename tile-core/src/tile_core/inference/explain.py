"""A plan as text: layouts in normal form, instructions, moves with both places, notes and costs; the same on every run."""

from __future__ import annotations

from collections.abc import Iterator

from ..expr import shape_text
from ..layout.layout import normal
from .plan import Move, TilePlan
from .schedule.chart import program, summary


def explain(plan: TilePlan, *, places: bool = True) -> str:
    """The whole plan. ``places``: say where in the source the two sides of a move stand."""
    lines = [f"plan {plan.program.name} for {plan.target}"]
    lines += _section("costs", _costs(plan))
    lines += _section("gemms", (f"{name}: {choice}" for name, choice in plan.atoms.items()))
    lines += _section("tiles", _tiles(plan))
    lines += _section("operands", (f"{name} = {normal(layout)}" for name, layout in plan.operands.items()))
    lines += _section("loops", _loops(plan))
    lines += _section("placements", _placements(plan))
    lines += _section("schedules", _schedules(plan))
    lines += _section("moves", (line for m in plan.moves for line in _move(m, places)))
    lines += _section("notes", plan.notes)
    return "\n".join(lines) + "\n"


def _section(title: str, lines: Iterator[str] | tuple[str, ...]) -> list[str]:
    found = [f"  {line}" for line in lines]
    return [title, *found] if found else []


def _costs(plan: TilePlan) -> Iterator[str]:
    for name, c in plan.costs.items():
        yield (
            f"{name}: {c.time:.0f} clocks (matrix unit {c.tensor:.0f}, shared {c.shared:.0f}, issue {c.issue:.0f}, "
            f"memory {c.memory:.0f}), {c.registers} registers"
        )


def _tiles(plan: TilePlan) -> Iterator[str]:
    for buffer, layout in plan.layouts.items():
        yield f"{buffer.name} {buffer.space} {shape_text(buffer.shape)} {buffer.dtype} = {normal(layout)}"


def _loops(plan: TilePlan) -> Iterator[str]:
    for name, layout in plan.loops.items():
        window = plan.windows.get(name, {})
        only = "".join(f", only {a} <= i{k} < {a + n}" for k, (a, n) in window.items())
        yield f"{name}: {normal(layout)}{only}"


def _placements(plan: TilePlan) -> Iterator[str]:
    """One line for each engine with the nodes it runs."""
    by: dict[str, list[str]] = {}
    for name, p in plan.placements.items():
        by.setdefault(f"{p.engine}, issued by the {p.role}, stage {p.stage}", []).append(name)
    yield from (f"{where}: {' '.join(names)}" for where, names in by.items())


def _schedules(plan: TilePlan) -> Iterator[str]:
    for name, s in plan.schedules.items():
        yield f"{name}: {summary(s)}"
        yield from (f"  {line}" for line in program(s))


def _move(m: Move, places: bool) -> Iterator[str]:
    yield str(m)
    if places:
        yield from (
            f"  {what} at {span}" for what, span in ((m.node, m.span), (m.before, m.before_span)) if span
        )
