"""Prefix sums and maxima: the result lives where the source lives."""

from __future__ import annotations

from ...layout.layout import Layout
from ..model import Prefix


def result_layout(op: Prefix, source: Layout) -> Layout | None:
    """The layout that a scan gives its result: each thread finishes the elements it holds."""
    return source if op.result.shape == source.shape else None
