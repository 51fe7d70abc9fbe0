"""``tile inspect``: a kernel at one of its stages."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..settings import STAGES
from .options import kernel

if TYPE_CHECKING:
    from ..runtime import Kernel


def arguments(parser: argparse.ArgumentParser) -> None:
    kernel(parser)
    parser.add_argument("--emit", choices=STAGES, default="plan", help="the stage to show (default: plan)")
    parser.add_argument("--svg", metavar="FILE", help="draw the graph into a file")


def run(options: argparse.Namespace) -> int:
    from .loading import load

    found = load(options)
    text = SHOW[options.emit](found)
    if options.svg:
        from pathlib import Path

        from ..graph.draw import draw

        Path(options.svg).write_text(draw(found.graph), encoding="utf8")
    if options.json:
        print(
            json.dumps(
                {"kernel": found.name, "target": str(found.target), "stage": options.emit, "text": text}
            )
        )
    else:
        print(text)
    return 0


def _program(kernel: Kernel) -> str:
    from ..program.text import text

    return text(kernel.program)


def _graph(kernel: Kernel) -> str:
    from ..graph.text import text

    return text(kernel.graph)


def _plan(kernel: Kernel) -> str:
    from ..inference.explain import explain
    from ..program.text import text

    return f"{text(kernel.plan.program)}\n\n{explain(kernel.plan).rstrip()}"


def _schedule(kernel: Kernel) -> str:
    from ..inference.schedule.chart import text

    return text(kernel.plan.schedules, f"{kernel.name} for {kernel.target}")


def _ir(kernel: Kernel) -> str:
    return kernel.ir


SHOW: dict[str, Callable[[Kernel], str]] = {
    "program": _program,
    "graph": _graph,
    "plan": _plan,
    "schedule": _schedule,
    "ir": _ir,
    "source": lambda kernel: kernel.source,
}
