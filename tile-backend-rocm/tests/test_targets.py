"""The kernel driver's topology as it is read, on a made-up tree."""

from __future__ import annotations

import pytest

from tile_backend_rocm.probe import Node, arch_of, nodes
from tile_backend_rocm.targets import TARGETS


@pytest.mark.parametrize(
    ("version", "arch"),
    [(90402, "gfx942"), (90010, "gfx90a"), (90500, "gfx950"), (110000, "gfx1100"), (120001, "gfx1201")],
)
def test_version_of_the_driver(version, arch):
    assert arch_of(version) == arch
    assert arch in {info.target.arch for info in TARGETS}


def test_topology(tmp_path):
    for number, text in {
        "0": "cpu_cores_count 64\ngfx_target_version 0\n",
        "1": "gfx_target_version 90402\n",
    }.items():
        (tmp_path / number).mkdir()
        (tmp_path / number / "properties").write_text(text)
    bank = tmp_path / "1" / "mem_banks" / "0"
    bank.mkdir(parents=True)
    (bank / "properties").write_text("heap_type 1\nsize_in_bytes 206141652992\n")
    assert nodes(tmp_path) == [Node("gfx942", 206141652992)]


def test_no_driver(tmp_path):
    assert nodes(tmp_path / "nothing") == []


def test_waves_and_lds():
    facts = {info.target.arch: (info.subgroup, info.space("shared").capacity // 1024) for info in TARGETS}
    assert facts == {
        "gfx90a": (64, 64),
        "gfx942": (64, 64),
        "gfx950": (64, 160),
        "gfx1100": (32, 64),
        "gfx1201": (32, 64),
    }
