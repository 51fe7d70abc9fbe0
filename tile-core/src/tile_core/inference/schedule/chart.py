"""Schedules as text: a chart of one interval by engine and stream, the program of each stream, and its tokens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .model import GROUP, MEET, Body
from .program import Schedule, Step, Wait

WIDTH = 80  # columns of one interval


def text(schedules: Mapping[str, Schedule], title: str) -> str:
    """All schedules of a plan. ``title`` names it."""
    if not schedules:
        return f"{title}: no loop has ops that run by themselves\n"
    lines = [f"schedules of {title}"]
    for name, s in schedules.items():
        lines += [f"{name}: {summary(s)}", *(f"  {line}" for line in (*chart(s), *program(s), *tokens(s)))]
    return "\n".join(lines) + "\n"


def summary(s: Schedule) -> str:
    """Interval, what bounds it, who found it, and rings, in one line."""
    busiest = max(s.bounds, key=lambda n: s.bounds[n])
    rings = ", ".join(f"{name} {depth}" for name, depth in s.depth.items() if depth > 1)
    proved = f", none is below {s.lower}" if s.lower > s.bounds[busiest] else ""
    found = "solver" if s.solved else "search"
    return f"every {s.interval} clocks ({busiest} takes {s.bounds[busiest]}{proved}), by the {found}" + (
        f", rings {rings}" if rings else ""
    )


def chart(s: Schedule) -> Iterator[str]:
    """One line of ``WIDTH`` columns for each engine and stream; ``op(-1)`` belongs to the iteration before."""
    rows = dict(_rows(s))
    wide = max((len(n) for n in rows), default=0)
    for name, stretches in sorted(rows.items()):
        line = ["."] * WIDTH
        for at, length, op in stretches:
            behind, first = divmod(at, s.interval)
            count = max(1, round(length * WIDTH / s.interval))
            label = f"{op}({-behind})" if behind else op
            for i, ch in enumerate(label.ljust(count, "=")[:count]):
                line[(first * WIDTH // s.interval + i) % WIDTH] = ch
        yield f"{name:{wide}} |{''.join(line)}|"


def _rows(s: Schedule) -> Iterator[tuple[str, list[tuple[int, int, str]]]]:
    """(engine or stream, its stretches of work: (clock, length, op))."""
    done = [o for o in s.body.ops if o.name in s.times.start]
    for unit in dict.fromkeys(o.unit for o in done if o.unit):
        yield unit, [(s.times.start[o.name], o.busy, o.name) for o in done if o.unit == unit]
    for stream in s.streams:
        mine = [o for o in done if o.stream == stream and not o.asynchronous and not o.unit]
        if mine:
            yield f"({stream})", [(s.times.start[o.name], o.hold, o.name) for o in mine]


def program(s: Schedule) -> Iterator[str]:
    """What each stream does at kernel step k."""
    for name, steps in s.streams.items():
        count = s.stages(name)
        yield f"{name}: {count} {'iteration' if count == 1 else 'iterations'} in a step"
        yield from (f"  {_step(s, step)}" for step in steps)


def _step(s: Schedule, step: Step) -> str:
    waits = ", ".join(_wait(s, w) for w in step.waits if w.token != step.op)
    at = "" if s.body.op[step.op].kind == MEET else f"(k{-step.stage if step.stage else ''})"
    return f"{step.op}{at}" + (f"  after {waits}" if waits else "")


def _wait(s: Schedule, w: Wait) -> str:
    if s.tokens[w.token].kind == GROUP:
        return f"{w.token} (at most {w.distance} pending)"
    return f"{w.token} of i{-w.distance if w.distance else ''}"


def tokens(s: Schedule) -> Iterator[str]:
    """The tokens, with who produces them."""
    for t in s.tokens.values():
        slots = f" x{t.slots}" if t.slots > 1 else ""
        yield f"token {t.name}: {t.kind}{slots} by {', '.join(f'{u}{_copies(s.body, u)}' for u in t.producers)}"


def _copies(body: Body, op: str) -> str:
    return " of every warp" if body.stream[body.op[op].stream].cooperative else ""
