from __future__ import annotations

import pytest

from tile_core.bounds import broken_bound


@pytest.mark.parametrize(
    ("requires", "version", "broken"),
    [
        (["tile-core>=0.1,<0.2"], "0.1.7", ""),
        (["tile-core<0.2,>=0.1"], "0.2.0", "tile-core<0.2"),
        (["Tile_Core (>=0.3)"], "0.2.9", "tile-core>=0.3"),
        (["tile-core[torch]==0.1"], "0.1.0", ""),
        (["tile-core>=9; extra == 'x'"], "0.1.0", ""),
        (["tile-core-extras>=9", "numpy>=9"], "0.1.0", ""),
        (["tile-core~=0.1", "tile-core"], "5.0", ""),
        (["tile-core>=0.1"], "", ""),
        (["tile-core<0.2"], "0.2.0.dev3", "tile-core<0.2"),
    ],
)
def test_bounds(requires, version, broken):
    assert broken_bound(requires, "tile-core", version) == broken
