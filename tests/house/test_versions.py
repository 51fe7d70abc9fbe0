"""One version for all packages, and bounds that fit it."""

from __future__ import annotations

import re

from tracked import PACKAGES, ROOT

from tile_core.backend import read_toml


def project(package):
    return read_toml((package / "pyproject.toml").read_text("utf8"))["project"]


def test_one_version():
    versions = {p.name: project(p)["version"] for p in PACKAGES}
    assert len(set(versions.values())) == 1, versions


def test_bounds_fit_the_version():
    major, minor = project(PACKAGES[0])["version"].split(".")[:2]
    bound = f">={major}.{minor},<{major}.{int(minor) + 1}"
    for package in PACKAGES[1:]:
        own = {re.split(r"[<>=]", d)[0]: d for d in project(package)["dependencies"] if d.startswith("tile-")}
        assert own["tile-core"] == f"tile-core{bound}"
        assert all(d == f"{name}{bound}" for name, d in own.items())


def test_entry_points_are_the_names():
    for package in PACKAGES[1:]:
        name = package.name.removeprefix("tile-backend-")
        module = f"{package.name.replace('-', '_')}.plugin"
        assert project(package)["entry-points"] == {"tile_core.backends": {name: module}}


def test_the_two_lists_of_test_requirements_agree():
    groups = read_toml((ROOT / "pyproject.toml").read_text("utf8"))["dependency-groups"]
    listed = (ROOT / "tests" / "requirements.txt").read_text("utf8").splitlines()
    assert {r for g in ("test", "lint") for r in groups[g]} <= set(listed)
    editable = {line.removeprefix("-e ./") for line in listed if line.startswith("-e")}
    assert {p.name for p in PACKAGES} <= editable


def test_workspace_holds_every_package():
    sources = read_toml((ROOT / "pyproject.toml").read_text("utf8"))["tool"]["uv"]["sources"]
    assert set(sources) == {p.name for p in PACKAGES}
