"""Where something stands in the user's file, and the snippet that shows it."""

from __future__ import annotations

import linecache
import unicodedata
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """A range of source text. Lines and columns count from 1; ``end_column`` is one past the last character.

    ``caller`` is the place that inlined this code (a macro call), or None.
    """

    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    function: str = ""
    caller: Span | None = None

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}"
        return f"{place}, in {self.function}" if self.function else place

    def snippet(self, label: str = "") -> str:
        """The source line with a caret under each column of the span, and the chain of callers."""
        text = linecache.getline(self.file, self.line).rstrip("\n").expandtabs(1)
        chain = _callers(self)
        if not text:
            return f"  --> {self}{chain}"
        stop = self.end_column if self.end_line == self.line else len(text) + 1
        before = _width(text[: self.column - 1])
        carets = max(1, _width(text[self.column - 1 : stop - 1]))
        gutter = " " * len(str(self.line))
        mark = "^" * carets + (f" {label}" if label else "")
        return "\n".join(
            (
                f"{gutter}--> {self}{chain}",
                f"{gutter} |",
                f"{self.line} | {text}",
                f"{gutter} | {' ' * before}{mark}",
            )
        )


def _callers(span: Span) -> str:
    out, at = "", span.caller
    while at is not None:
        out += f", called from {at.file}:{at.line}"
        at = at.caller
    return out


def _width(text: str) -> int:
    """Columns that ``text`` takes on a terminal: East Asian wide characters take two."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
