"""Limits of the standard, and adapters known by their names."""

from __future__ import annotations

import pytest

from tile_backend_webgpu.probe import arch_of
from tile_backend_webgpu.targets import BY_ARCH as BY_NAME
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
    assert "shader-f16" not in default.features


def test_lavapipe():
    info = BY_ARCH["lavapipe"]
    assert (info.space("shared").capacity, info.max_threads, info.subgroup) == (32768, 1024, 8)
    assert "float16" in info.dtypes


@pytest.mark.parametrize(
    ("device", "arch"),
    [("llvmpipe (LLVM 15.0.6, 256 bits)", "lavapipe"), ("Apple M2", "apple"), ("AMD Radeon 780M", "default")],
)
def test_adapter_by_name(device, arch):
    rows = [g.limits() for g in BY_NAME.values()]
    most = {name: max(row[name] for row in rows) for name in rows[0]}
    assert arch_of({"device": device}, most, BY_NAME["apple"].features) == arch


def test_adapter_that_grants_less_is_the_default_one():
    limits = {**BY_NAME["lavapipe"].limits(), "max-compute-workgroup-storage-size": 16384}
    assert arch_of({"device": "llvmpipe"}, limits, BY_NAME["lavapipe"].features) == "default"
    assert arch_of({"device": "llvmpipe"}, BY_NAME["lavapipe"].limits(), frozenset()) == "default"
