"""Schedules as text."""

from __future__ import annotations

import bodies as b
from making import schedule

from tile_core.inference.schedule.chart import text


def test_gemm() -> None:
    s = schedule(b.gemm_together())
    assert s is not None
    lines = text({"for0": s}, "it").splitlines()
    assert lines[:2] == [
        "schedules of it",
        "for0: every 1024 clocks (shared takes 1024), by the search, rings A 4, B 4",
    ]
    chart = {line.split("|")[0].strip(): line.split("|")[1] for line in lines if "|" in line}
    assert set(chart) == {"(main)", "copy", "tensor"}
    assert {len(row) for row in chart.values()} == {80}
    assert "." not in chart["tensor"]  # busy all the time
    start = lines.index("  main: 2 iterations in a step")
    assert lines[start:] == [
        "  main: 2 iterations in a step",
        "    mma(k)  after loadB+loadA->main of i",
        "    mma.done(k-1)  after main.tensor:mma (at most 1 pending)",
        "  copy: 1 iteration in a step",
        "    loadB(k)  after mma.done->copy of i-4",
        "    loadA(k)",
        "  token main.tensor:mma: group by mma of every warp",
        "  token mma.done->copy: signal x4 by mma.done of every warp",
        "  token loadB+loadA->main: signal x4 by loadB, loadA",
    ]


def test_nothing_to_show() -> None:
    assert text({}, "it") == "it: no loop has ops that run by themselves\n"
