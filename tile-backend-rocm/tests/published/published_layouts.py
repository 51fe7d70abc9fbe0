"""Reads ``matrix_layouts.txt``: AMD's values, by instruction and matrix."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

Table = dict[str, dict[int, list[tuple[int, int]]]]  # matrix -> lane -> (row, column) of each element


@lru_cache(maxsize=1)
def published() -> dict[str, Table]:
    """By our name of an instruction."""
    out: dict[str, Table] = {}
    at: Table = {}
    for line in (Path(__file__).parent / "matrix_layouts.txt").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        words = line.split()
        if not line.startswith(" "):
            at = out[words[0]] = {"A": {}, "B": {}, "D": {}}
            continue
        at[words[0]][int(words[1])] = [(int(r), int(c)) for r, c in (w.split(",") for w in words[2:])]
    return out
