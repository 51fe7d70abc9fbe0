"""Level 0: the package can be found, is light, and its facts agree with each other. Needs no toolkit and no device."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import fields

import pytest

from tile_core.backend import API, Backend
from tile_core.errors import Unsupported
from tile_core.hardware import Target, TargetInfo
from tile_core.hardware import TestedDevice as Row  # pytest takes names in Test for tests
from tile_core.registry import registry
from tile_core.testing import stages

MILLISECONDS = 150
HEAVY = {"torch", "tvm", "tvm_ffi", "z3", "llvmlite", "triton", "cutlass", "cupy", "jax", "wgpu"}

IMPORT = """
import json, sys, time
from tile_core.registry import registry
core = set(sys.modules)
begin = time.perf_counter()
registry().get({name!r})
spent = time.perf_counter() - begin
print(json.dumps([spent * 1e3, sorted({{m.partition(".")[0] for m in set(sys.modules) - core}})]))
"""


@pytest.mark.l0
@pytest.mark.conformance
def test_import_is_light(tile_name: str) -> None:
    """Loading the plugin brings in no framework or vendor library, and takes little time (best of three)."""
    runs: list[tuple[float, list[str]]] = []
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", IMPORT.format(name=tile_name)], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        runs.append(json.loads(done.stdout))
    assert not set(runs[0][1]) & HEAVY
    # an embedded backend is core itself: there is nothing beyond core to be measured
    assert registry().embedded(tile_name) or min(spent for spent, _ in runs) < MILLISECONDS


@pytest.mark.l0
@pytest.mark.conformance
def test_version_of_the_interface(tile_backend: Backend) -> None:
    major, minor = tile_backend.api
    assert major == API.major
    assert minor <= API.minor


@pytest.mark.l0
@pytest.mark.conformance
def test_first_target_is_the_default(tile_backend: Backend) -> None:
    infos = tile_backend.targets()
    assert infos
    assert len({i.target for i in infos}) == len(infos)
    assert tile_backend.info(Target(tile_backend.name)) == infos[0]
    with pytest.raises(Unsupported, match="no architecture"):
        tile_backend.info(Target(tile_backend.name, "no-such-arch"))


@pytest.mark.l0
@pytest.mark.conformance
def test_target_text(tile_backend: Backend, tile_info: TargetInfo) -> None:
    target = tile_info.target
    assert target.backend == tile_backend.name
    assert target.arch
    assert Target.parse(str(target)) == target
    assert tile_backend.info(target) is not None


@pytest.mark.l0
@pytest.mark.conformance
def test_facts_agree(tile_backend: Backend, tile_info: TargetInfo) -> None:
    """Instructions use engines and types that the target has, and are not faster than the whole chip."""
    engines = {e.name for e in tile_info.engines}
    assert tile_info.peaks["global"] > 0
    assert tile_info.sources
    assert set(tile_info.estimated) <= {f.name for f in fields(TargetInfo)}
    assert set(tile_info.peaks) - {"global"} <= tile_info.dtypes
    names = [a.name for a in tile_info.atoms]
    assert len(set(names)) == len(names)
    for atom in tile_info.atoms:
        assert atom.engine in engines, atom.name
        assert set(atom.types) <= tile_info.dtypes, atom.name
        assert atom.threads % tile_info.subgroup == 0, atom.name
        peak = tile_info.peaks.get(atom.types[0])
        assert peak is not None, atom.name
        assert atom.rate * tile_info.cores * tile_info.clock <= 1.1 * peak, atom.name


@pytest.mark.l0
@pytest.mark.conformance
def test_devices_are_of_known_targets(tile_backend: Backend) -> None:
    """Asking is allowed anywhere; a device of an architecture without facts would be of no use."""
    for device in tile_backend.devices():
        assert device.target.backend == tile_backend.name
        assert tile_backend.info(device.target).target.arch == device.target.arch


@pytest.mark.l0
@pytest.mark.conformance
def test_checks_answer(tile_backend: Backend) -> None:
    for check in tile_backend.checks():
        finding = check.run()
        assert finding.level in ("ok", "warning", "error")
        assert finding.message
        assert finding.level == "ok" or finding.remedy, check.name


@pytest.mark.l0
@pytest.mark.conformance
def test_roles_are_there_or_say_why(tile_backend: Backend, tile_info: TargetInfo) -> None:
    for make in (tile_backend.lowering, tile_backend.codegen, tile_backend.compiler):
        found = stages.role(lambda make=make: make(tile_info))
        assert found is not None, make.__name__
        assert not isinstance(found, str) or make.__name__ in found


@pytest.mark.l0
@pytest.mark.conformance
def test_tested_devices_are_readable(tile_backend: Backend) -> None:
    for row in tile_backend.tested_devices():
        assert isinstance(row, Row)
        assert row.passed + row.failed > 0
    assert registry().get(tile_backend.name) is tile_backend
