"""Backends look alike: the same files, whoever maintains them."""

from __future__ import annotations

import pytest
from tracked import BACKENDS, files

# what every backend has; the rooms that some have and others lack are of the second list
REQUIRED = {
    "README.md",
    "pyproject.toml",
    "src/{module}/__init__.py",
    "src/{module}/backend.py",
    "src/{module}/checks.py",
    "src/{module}/devices.toml",
    "src/{module}/plugin.py",
    "src/{module}/probe.py",
    "src/{module}/py.typed",
    "src/{module}/targets.py",
    "tests/test_conformance.py",
    "tests/test_targets.py",
}
ROOMS = {
    "atoms",
    "tiles",
    "lowering",
    "codegen",
    "compiler",
    "launcher",
    "page",
    "timer",
    "templates",
    "prelude",
    "emulator",
}


@pytest.fixture(params=BACKENDS, ids=lambda p: p.name)
def package(request):
    return request.param


def test_required_files(package):
    module = package.name.replace("-", "_")
    there = {f.relative_to(package).as_posix() for f in files() if f.is_relative_to(package)}
    assert not {name.format(module=module) for name in REQUIRED} - there


def test_no_room_of_its_own(package):
    source = package / "src" / package.name.replace("-", "_")
    known = {name.format(module=source.name).rpartition("/")[2] for name in REQUIRED}
    inside = {f.relative_to(source).parts[0] for f in files() if f.is_relative_to(source)}
    assert {name for name in inside - known if name.partition(".")[0] not in ROOMS} == set()


def test_plugin_is_only_the_hook(package):
    plugin = package / "src" / package.name.replace("-", "_") / "plugin.py"
    text = plugin.read_text("utf8")
    assert text.count("def ") == 1
    assert "def tile_register_backends(registry: BackendRegistry) -> None:" in text
    assert len(text.splitlines()) < 20
