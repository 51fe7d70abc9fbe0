"""Architectures named by the driver's compute capability, and the limits that generated code relies on."""

from __future__ import annotations

import pytest

from tile_backend_cuda.probe import BY_CAPABILITY, arch_of
from tile_backend_cuda.targets import TARGETS

BY_ARCH = {info.target.arch: info for info in TARGETS}


def test_every_capability_has_facts():
    assert set(BY_CAPABILITY.values()) == set(BY_ARCH)


@pytest.mark.parametrize(
    ("capability", "arch"),
    [((9, 0), "sm_90a"), ((8, 7), "sm_86"), ((8, 0), "sm_80"), ((12, 1), "sm_121"), ((5, 2), "sm_52")],
)
def test_capability(capability, arch):
    assert arch_of(*capability) == arch


@pytest.mark.parametrize(
    ("arch", "shared"),
    [
        ("sm_70", 96),
        ("sm_75", 64),
        ("sm_80", 163),
        ("sm_86", 99),
        ("sm_89", 99),
        ("sm_90a", 227),
        ("sm_100a", 227),
    ],
)
def test_shared_memory_of_a_block(arch, shared):
    assert BY_ARCH[arch].space("shared").capacity == shared * 1024


def test_tensor_memory_is_blackwells_alone():
    assert {arch for arch, info in BY_ARCH.items() if info.space("tensor")} == {"sm_100a", "sm_103a"}
