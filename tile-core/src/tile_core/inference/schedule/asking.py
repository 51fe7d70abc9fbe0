"""The solver in a process of its own: a question goes in, and its answer comes out.

Other libraries of a process bring a z3, too (TVM, and LLVM in drivers of devices), and of two the symbols may get mixed: calls of
one then end in the other, which aborts. ``python -m tile_core.inference.schedule.asking`` is the other end.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace

from .answers import Optimum, optimum_of, row
from .model import Body, Dep
from .timing import Timing


def apart(body: Body, deps: Sequence[Dep], times: Timing, rlimit: int) -> Optimum | None:
    """``optimal.optimum`` of these; None if no process can be started here, or if it fails."""
    plain = replace(body, storage=tuple(replace(s, buffer=None) for s in body.storage))
    question = pickle.dumps((plain, tuple(deps), times, rlimit))
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    try:
        done = subprocess.run([sys.executable, "-m", __name__], input=question, capture_output=True, env=env)
    except OSError:
        return None
    return optimum_of(json.loads(done.stdout)) if done.returncode == 0 else None


def main() -> None:
    from .optimal import optimum

    body, deps, times, rlimit = pickle.load(sys.stdin.buffer)
    json.dump(row(optimum(body, deps, times, rlimit)), sys.stdout)


if __name__ == "__main__":
    main()
