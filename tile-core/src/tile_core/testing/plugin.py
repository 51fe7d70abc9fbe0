"""The pytest plugin of the conformance kit: which backend, which of its targets and devices, and the record of a run."""

from __future__ import annotations

import fnmatch
from pathlib import Path
from typing import Any, Protocol

import pytest

from ..backend import Backend
from ..errors import BackendError
from ..hardware import Device, TargetInfo
from ..registry import registry
from . import kernels, requires, residence, stages
from .record import Recorder

pytest.register_assert_rewrite("tile_core.testing.conformance")

LEVELS = {
    "l0": "plugin: light import, version of the interface, facts that agree",
    "l1": "emit: plans and source, needs no toolkit",
    "l2": "compile: needs the toolkit, no device",
    "l3": "numerics: needs a device",
    "l4": "runtime: calls as users make them, needs a device",
}
XFAILS = "conformance_xfail.toml"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("tile", "conformance kit of tile")
    group.addoption("--tile-backend", help="backend under test")
    group.addoption("--tile-target", help="only this architecture of it")
    group.addoption(
        "--tile-record", metavar="FILE", help="append a row for each device tested to FILE (devices.toml)"
    )
    group.addoption("--tile-xfail", metavar="FILE", help=f"known failures, beside those in {XFAILS}")
    parser.addini("tile_backend", "backend under test, when the option is not given", default="")


def pytest_configure(config: pytest.Config) -> None:
    for level, meaning in LEVELS.items():
        config.addinivalue_line("markers", f"{level}: {meaning}")
    config.addinivalue_line("markers", "conformance: part of the conformance kit")
    # under xdist the controller sees every report, so it alone records
    if (file := config.getoption("--tile-record")) and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recorder(Path(file)), "tile-recorder")


class Asking(Protocol):
    """A fixture's request, or a test function before it gets its parameters."""

    @property
    def config(self) -> pytest.Config: ...

    @property
    def module(self) -> Any: ...


def backend_name(test: Asking) -> str:
    """``TILE_BACKEND`` of the test module, else the option, else the ini value."""
    name = (
        getattr(test.module, "TILE_BACKEND", "")
        or test.config.getoption("--tile-backend")
        or test.config.getini("tile_backend")
    )
    if not name:
        raise pytest.UsageError(
            "name the backend under test: --tile-backend NAME, or TILE_BACKEND in the test module"
        )
    return name


@pytest.fixture
def tile_name(request: pytest.FixtureRequest) -> str:
    return backend_name(request)


@pytest.fixture
def tile_backend(request: pytest.FixtureRequest, tile_name: str) -> Backend:
    """The backend under test; its being broken fails the test."""
    request.node.user_properties.append(("tile_backend", tile_name))
    return registry().get(tile_name)


@pytest.fixture
def tile_info(request: pytest.FixtureRequest) -> TargetInfo:
    """Facts of one target."""
    return _given(request.param)


@pytest.fixture
def tile_emulated(request: pytest.FixtureRequest) -> TargetInfo:
    """Facts of a target whose sources can be run without a device: the one asked for, else the default one."""
    return _given(request.param)


@pytest.fixture
def tile_case(request: pytest.FixtureRequest) -> kernels.Case:
    return _given(request.param)


@pytest.fixture
def tile_device(request: pytest.FixtureRequest) -> Device:
    device = _given(request.param)
    told = ("tile_backend", device.target.backend), ("tile_device", f"{device.target}/{device.index}")
    request.node.user_properties.extend(told)
    return device


def _given(value: Any) -> Any:
    """A parameter, or what stands in for one: a reason to skip, or the error that finding it met."""
    match value:
        case str():
            pytest.skip(value)
        case Exception():
            raise value
        case _:
            return value


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    names = metafunc.fixturenames
    wanted = [n for n in ("tile_device", "tile_emulated", "tile_info", "tile_case") if n in names]
    if not wanted:
        return
    try:
        backend = registry().get(backend_name(metafunc))
        rows = _rows(metafunc, backend, wanted)
    except BackendError as error:
        rows = [pytest.param(*[error] * len(wanted), id="backend")]
    metafunc.parametrize(wanted, rows, indirect=True)


def _rows(metafunc: pytest.Metafunc, backend: Backend, wanted: list[str]) -> list[Any]:
    """One row for each test; a single skipped one where the backend has no target, role or device for it."""
    only = metafunc.config.getoption("--tile-target")
    infos = [i for i in backend.targets() if only in (None, i.target.arch, str(i.target))]
    if wanted == ["tile_info"]:
        return [pytest.param(i, id=i.target.arch) for i in infos] or _skipped(1, f"no target {only}")
    if reason := _no_role(backend, infos):
        return _skipped(len(wanted), reason)
    if "tile_device" in wanted:
        devices = [d for d in backend.devices() if only in (None, d.target.arch, str(d.target))]
        if wanted == ["tile_device"]:
            rows = [pytest.param(_called(d), id=f"{d.target.arch}-{d.index}") for d in devices]
            return rows or _skipped(1, f"no {backend.name} device here")
        rows = [_row(d, d, backend.info(d.target), c) for d in devices for c in kernels.CASES]
        return rows or _skipped(len(wanted), f"no {backend.name} device here")
    if "tile_emulated" in wanted:
        return _emulated(backend, infos[0]) if infos else _skipped(len(wanted), f"no target {only}")
    return [_row(i, i, i, c) for i in infos for c in kernels.SMALL] or _skipped(
        len(wanted), f"no target {only}"
    )


def _called(device: Device) -> Device | str:
    """The device, or why calls cannot be sent to it."""
    if device.index and residence.on_host(device):
        return "calls with arrays of the host go to the first device"
    return device


def _emulated(backend: Backend, info: TargetInfo) -> list[Any]:
    found = stages.role(lambda: backend.emulator(info))
    return (
        _skipped(2, found) if isinstance(found, str) else [_row(info, info, info, c) for c in kernels.CASES]
    )


def _row(named: TargetInfo | Device, value: TargetInfo | Device, info: TargetInfo, case: kernels.Case) -> Any:
    index = f"{value.index}-" if isinstance(value, Device) else ""
    return pytest.param(value, requires.unfit(case, info) or case, id=f"{named.target.arch}-{index}{case}")


def _skipped(count: int, reason: str) -> list[Any]:
    return [pytest.param(*[reason] * count, id="none")]


def _no_role(backend: Backend, infos: list[TargetInfo]) -> str:
    found = [stages.role(lambda i=i: backend.codegen(i)) for i in infos]
    return (
        next((r for r in found if isinstance(r, str)), "") if all(isinstance(r, str) for r in found) else ""
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Known failures, from ``conformance_xfail.toml`` next to the tests and from the file of the option.

    They are strict, and each must name a test that exists.
    """
    by_folder: dict[Path, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("conformance"):
            by_folder.setdefault(item.path.parent, []).append(item)
    whole = not any("::" in argument for argument in config.args)
    rows = [(folder / XFAILS, found) for folder, found in by_folder.items()]
    if option := config.getoption("--tile-xfail"):
        rows.append((Path(option), [item for found in by_folder.values() for item in found]))
    for file, found in rows:
        _mark_known(file, found, whole)


def _mark_known(file: Path, items: list[pytest.Item], whole: bool) -> None:
    """``whole``: nothing was left out of the collection, so that a row without a test is a mistake."""
    for row in read_xfails(file):
        named = [item for item in items if fnmatch.fnmatchcase(item.name, row["test"])]
        if not named and whole:
            raise pytest.UsageError(f"{file}: no test is named {row['test']!r}")
        for item in named:
            reason = f"{row['reason']} {row['link']}".strip()
            item.add_marker(pytest.mark.xfail(reason=reason, strict=True))


def read_xfails(file: Path) -> list[dict[str, str]]:
    """Rows of the file: ``test`` (a name or a pattern of names), ``reason`` and ``link``. [] if there is no file."""
    from ..backend import read_toml

    rows: list[dict[str, str]] = read_toml(file.read_text("utf8")).get("xfail", []) if file.is_file() else []
    for row in rows:
        if row.keys() != {"test", "reason", "link"}:
            raise pytest.UsageError(f"{file}: a row has the keys test, reason and link, not {sorted(row)}")
    return rows
