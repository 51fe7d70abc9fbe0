"""What a comparison asks of a contestant before it is timed: a small error, and the same bits each time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

OURS = "tile "
TOLERANCE = {"bfloat16": 1e-2, "float16": 2e-3}  # relative, Frobenius
REPEATS = 20


class Unsound(Exception):
    """A kernel of ours that is wrong, or not the same each time: its row has no result."""


def refuse(row: str, errors: Mapping[str, float], dtype: str) -> None:
    """Raise ``Unsound`` where a kernel of ours is wrong; NaN is wrong."""
    wrong = {n: e for n, e in errors.items() if n.startswith(OURS) and not e <= TOLERANCE[dtype]}
    if wrong:
        raise Unsound(f"{row}: {wrong}")


def refuse_unsteady(
    torch: Any, row: str, contestants: Mapping[str, Callable[[Any], Any]], data: Any, repeats: int = REPEATS
) -> None:
    """Raise ``Unsound`` where one of our kernels does not give the same bits each time.

    For kernels whose sums have one order. What differs is said by its first and last index and how many elements there are:
    these tell which tile of which block it was.
    """
    for name, run in contestants.items():
        if not name.startswith(OURS):
            continue
        first = run(data)
        for n in range(repeats):
            got = run(data)
            if torch.equal(got, first):
                continue
            off = (got.view(torch.int16) != first.view(torch.int16)).nonzero()
            where = f"{len(off)} elements from {off[0].tolist()} to {off[-1].tolist()}"
            raise Unsound(f"{row}: {name}, run {n + 1} of {repeats}: {where} differ from the first run")
