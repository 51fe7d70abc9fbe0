"""Memories and pipes of the cores, against the figures of Huawei's compiler."""

from __future__ import annotations

from tile_backend_ascend.probe import arch_of
from tile_backend_ascend.targets import TARGETS

BY_ARCH = {info.target.arch: info for info in TARGETS}


def test_cores():
    assert {arch: info.cores for arch, info in BY_ARCH.items()} == {
        "910B1": 24,
        "910B2": 24,
        "910B3": 20,
        "910B4": 20,
        "910_9391": 24,
        "910_9362": 20,
    }


def test_memories():
    spaces = {s.name: (s.capacity, s.alignment) for s in BY_ARCH["910B1"].spaces if s.name != "global"}
    assert spaces == {
        "l1": (524032, 32),
        "l0a": (65536, 512),
        "l0b": (65536, 512),
        "l0c": (131072, 512),
        "ub": (196352, 32),
    }


def test_one_thread_of_control():
    assert not any(info.simt for info in TARGETS)
    assert {"mte1", "mte2", "mte3", "cube", "vector", "fixpipe"} < {e.name for e in TARGETS[0].engines}


def test_name_of_the_runtime():
    assert arch_of("Ascend910B3") == "910B3"
