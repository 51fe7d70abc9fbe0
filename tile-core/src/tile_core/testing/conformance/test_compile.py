"""Level 2: the toolkit accepts the source. Needs no device."""

from __future__ import annotations

import pytest

from tile_core.backend import Backend
from tile_core.hardware import TargetInfo
from tile_core.testing import stages
from tile_core.testing.kernels import Case


@pytest.mark.l2
@pytest.mark.conformance
def test_artifact(tile_backend: Backend, tile_info: TargetInfo, tile_case: Case) -> None:
    compiler = stages.role(lambda: tile_backend.compiler(tile_info))
    if isinstance(compiler, str):
        pytest.skip(compiler)
    artifact, _ = stages.compiled(tile_case, tile_backend, tile_info)
    assert artifact.kind
    assert artifact.data


@pytest.mark.l2
@pytest.mark.conformance
def test_fingerprint(tile_backend: Backend, tile_info: TargetInfo) -> None:
    """The same each time, since it is part of the cache's key."""
    compiler = stages.role(lambda: tile_backend.compiler(tile_info))
    if isinstance(compiler, str):
        pytest.skip(compiler)
    assert compiler.fingerprint()
    assert compiler.fingerprint() == tile_backend.compiler(tile_info).fingerprint()
