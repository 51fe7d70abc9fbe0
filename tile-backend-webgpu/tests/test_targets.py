"""Limits of the standard, and adapters known by their names."""

from __future__ import annotations

import pytest

from tile_backend_webgpu.probe import arch_of
from tile_backend_webgpu.targets import TARGETS

BY_ARCH = {info.target.arch: info for info in TARGETS}


def test_default_is_what_every_device_grants():
    default = TARGETS[0]
    assert default.target.arch == "default"
    assert (default.space("shared").capacity, default.max_threads, default.features) == (
        16384,
        256,
        frozenset(),
    )
    assert "float16" not in default.dtypes


def test_lavapipe():
    info = BY_ARCH["lavapipe"]
    assert (info.space("shared").capacity, info.max_threads, info.subgroup) == (32768, 1024, 8)
    assert "float16" in info.dtypes


@pytest.mark.parametrize(
    ("device", "arch"),
    [("llvmpipe (LLVM 15.0.6, 256 bits)", "lavapipe"), ("Apple M2", "apple"), ("AMD Radeon 780M", "default")],
)
def test_adapter(device, arch):
    assert arch_of({"device": device}) == arch
