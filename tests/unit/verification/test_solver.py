"""The solver is left alone where another version of its library is loaded."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from tile_core.verification.solver import usable

SYSTEM = "7f00-7f01 r-xp 00000000 08:01 12 /usr/lib/x86_64-linux-gnu/libz3.so.4"


@pytest.mark.parametrize(("other", "expected"), [("", True), (SYSTEM, False)])
def test_another_version(tmp_path: Path, other: str, expected: bool) -> None:
    found = find_spec("z3")
    assert found is not None and found.origin is not None
    own = f"7f02-7f03 r-xp 00000000 08:01 13 {Path(found.origin).parent}/lib/libz3.so.5.4"
    maps = tmp_path / "maps"
    maps.write_text(f"{own}\n{other}\n7f04-7f05 r-xp 00000000 08:01 14 /usr/lib/libc.so.6\n")
    assert usable(maps) is expected


def test_no_such_list(tmp_path: Path) -> None:
    assert usable(tmp_path / "maps")
