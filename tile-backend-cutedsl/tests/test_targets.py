"""The same hardware as the CUDA C++ backend's."""

from __future__ import annotations

from tile_backend_cuda.targets import TARGETS as HARDWARE
from tile_backend_cutedsl.targets import ARCHITECTURES, TARGETS


def test_same_facts_under_another_name():
    by_arch = {info.target.arch: info for info in HARDWARE}
    assert tuple(info.target.arch for info in TARGETS) == ARCHITECTURES
    for info in TARGETS:
        assert info.target.backend == "cutedsl"
        assert (info.atoms, info.spaces) == (
            by_arch[info.target.arch].atoms,
            by_arch[info.target.arch].spaces,
        )
