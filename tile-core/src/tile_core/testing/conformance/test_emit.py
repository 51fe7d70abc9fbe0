"""Level 1: the backend plans and writes source for each of its targets. Needs no toolkit and no device."""

from __future__ import annotations

import pytest

from tile_core.backend import Backend
from tile_core.hardware import TargetInfo
from tile_core.testing import stages
from tile_core.testing.kernels import Case


@pytest.mark.l1
@pytest.mark.conformance
def test_source_is_deterministic(tile_backend: Backend, tile_info: TargetInfo, tile_case: Case) -> None:
    """Two builds of one kernel give the same text and the same launch, to the letter: it is the cache's key."""
    assert stages.emit(tile_case, tile_backend, tile_info) == stages.emit(tile_case, tile_backend, tile_info)


@pytest.mark.l1
@pytest.mark.conformance
def test_source_is_launchable(tile_backend: Backend, tile_info: TargetInfo, tile_case: Case) -> None:
    """Parameters come in the kernel's order, and every launch of it has an entry point."""
    source = stages.emit(tile_case, tile_backend, tile_info)
    names = [p.name for p in tile_case.program.params]
    assert [p.name for p in source.launch.params][: len(names)] == names
    assert len(source.launch.entries) == len(tile_case.program.launches)
    for entry, grid, threads in source.launch.entries:
        assert entry
        assert grid
        assert threads
    assert source.language
    assert source.suffix.startswith(".")
