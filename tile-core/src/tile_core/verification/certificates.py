"""Certificates: each question to the solver in SMT-LIB 2 with what was answered, so that another solver can be asked again."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Certificates:
    """Files of one kernel in ``folder``, in the order of the questions. ``unsat`` is what proves."""

    folder: Path
    of: str = ""
    names: list[str] = field(default_factory=list[str])

    def keep(self, what: str, solver: Any, answer: Any) -> None:
        """One question: ``what`` was to be shown of ``of``."""
        import z3  # pyright: ignore[reportMissingTypeStubs]

        plain = re.sub(r"[^A-Za-z0-9]+", "-", f"{self.of} {what}").strip("-")[:80]
        self.names.append(f"{len(self.names):04d}-{plain}.smt2")
        self.folder.mkdir(parents=True, exist_ok=True)
        head = f"; {what}, of {self.of}\n; {answer}, z3 {z3.get_version_string()}\n"
        (self.folder / self.names[-1]).write_text(head + solver.to_smt2(), encoding="utf8")
