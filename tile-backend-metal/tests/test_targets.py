"""Limits that generated code relies on."""

from __future__ import annotations

import sys

import pytest

from tile_backend_metal.probe import FAMILIES, devices
from tile_backend_metal.targets import TARGETS


def test_every_family_has_facts():
    assert {f"apple{n}" for n in FAMILIES} == {info.target.arch for info in TARGETS}


def test_limits():
    assert {(info.subgroup, info.max_threads, info.space("shared").capacity) for info in TARGETS} == {
        (32, 1024, 32768)
    }


@pytest.mark.skipif(sys.platform == "darwin", reason="there may be a device on macOS")
def test_no_device_elsewhere():
    assert devices() == ()
