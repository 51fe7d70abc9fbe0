"""Which copies are boxes: where each begins in shared memory."""

from __future__ import annotations

import pytest

from tile_core.dtypes import dtype
from tile_core.expr import Buffer, Space, const
from tile_core.hardware import BulkRules
from tile_core.inference.bulk import boxes
from tile_core.layout.panels import span_tile
from tile_core.program import Region

RULES = BulkRules(alignment=16, spans=(128, 64, 32), largest=256, rank=5, group=128, place=128)
HALF = dtype("float16")


def region(rows: int, columns: int) -> Region:
    tensor = Buffer("A", (512, 512), HALF, Space.GLOBAL)
    return Region(tensor, (const(0), const(0)), (rows, columns), (False, False))


@pytest.mark.parametrize(("rows", "span"), [(2, 32), (1, 64), (3, 32)])
def test_panels_too_low_for_a_box_each(rows: int, span: int):
    """The second panel would begin where the engine cannot write."""
    assert boxes(region(rows, 64), span_tile((rows, 64), span, HALF.bits), RULES) is None


@pytest.mark.parametrize(("rows", "span"), [(4, 32), (2, 64), (1, 128), (64, 128)])
def test_every_panel_begins_at_a_place(rows: int, span: int):
    found = boxes(region(rows, 64), span_tile((rows, 64), span, HALF.bits), RULES)
    assert found is not None
    assert all(p.at * HALF.bits % (8 * RULES.place) == 0 for p in found.pieces)
