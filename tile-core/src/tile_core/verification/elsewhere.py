"""The question who writes an element, asked in a process of its own: for one that has another version of the solver's library."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from ..expr import Buffer
from ..program import Stmt
from .clash import Clash

ASK = (
    "import pickle, sys\n"
    "from tile_core.verification.outputs import exclusive\n"
    "answer = exclusive(*pickle.load(sys.stdin.buffer), None)\n"
    "pickle.dump(answer, sys.stdout.buffer)\n"
)


def exclusive_elsewhere(own: Sequence[tuple[Stmt, tuple[Stmt, ...]]], b: Buffer) -> Clash | bool | None:
    """As ``exclusive``; None as well where the process gives no answer."""
    paths = os.pathsep.join(p for p in sys.path if p)
    done = subprocess.run(
        [sys.executable, "-c", ASK],
        input=pickle.dumps((list(own), b)),
        capture_output=True,
        env={**os.environ, "PYTHONPATH": paths},
    )
    found: Any = pickle.loads(done.stdout) if done.returncode == 0 else None
    return found
