"""Every way in which an installed backend's package can be wrong, with real packages and the message for each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tile_core.backend import API

PLUGINS = Path(__file__).parents[1] / "plugins"

ASK = """
import json, sys
from tile_core.registry import Registry
from tile_core.errors import BackendError
names = Registry()
answers = []
for name in {names!r}:
    try:
        answers.append(["ok", type(names.get(name)).__module__])
    except BackendError as error:
        answers.append([type(error).__name__, str(error), type(error.__cause__).__name__])
print(json.dumps(answers))
"""

STATUSES = """
import json
from tile_core.registry import Registry
print(json.dumps({s.name: [s.state, s.detail, s.distribution] for s in Registry().statuses()}))
"""


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all of tests/plugins installed by pip."""
    folder = tmp_path_factory.mktemp("site")
    packages = [PLUGINS / "tile-backend-example", *sorted((PLUGINS / "broken").iterdir())]
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
    ]
    subprocess.run([*pip, "--target", str(folder), *map(str, packages)], check=True)
    return folder


def python(site: Path, code: str, **variables: str) -> str:
    path = os.pathsep.join(filter(None, (str(site), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": path, **variables}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def ask(site: Path, *names: str, **variables: str) -> list[list[str]]:
    return json.loads(python(site, ASK.format(names=names), **variables))


CASES = {
    "example": ("ok", ["tile_backend_example.backend"], None),
    "exmple": (
        "BackendNotFound",
        ["no backend named 'exmple'", "installed: ", "did you mean 'example'?"],
        "NoneType",
    ),
    "importfails": (
        "BackendLoadFailed",
        [
            "tile-backend-importfails 0.1.0 is installed but does not load",
            "No module named 'no_such_vendor_library'",
        ],
        "ModuleNotFoundError",
    ),
    "newapi": (
        "BackendIncompatible",
        [
            f"written for backend API {API.major}.{API.minor + 98}",
            f"this tile-core has {API.major}.{API.minor}",
        ],
        "NoneType",
    ),
    "tooold": (
        "BackendIncompatible",
        ["tile-backend-tooold 0.1.0 requires tile-core<0.1, this is tile-core 0."],
        "NoneType",
    ),
    "silent": (
        "BackendLoadFailed",
        ["tile-backend-silent 0.1.0 registered no backend named 'silent'"],
        "NoneType",
    ),
    "misspelt": (
        "BackendLoadFailed",
        [
            "tile-backend-misspelt 0.1.0",
            "unknown hook 'tile_register_backend'",
            "tile_register_backends(registry)",
        ],
        "PluginValidationError",
    ),
    "halfway": ("BackendLoadFailed", ["tile-backend-halfway 0.1.0", "second thoughts"], "ValueError"),
    "unannounced": (
        "BackendLoadFailed",
        ["'stray' is not announced", "add an entry point 'stray'"],
        "NoneType",
    ),
    "twice": (
        "BackendConflict",
        ["tile-backend-twice-a 0.1.0 and tile-backend-twice-b 0.1.0", "uninstall one"],
        "NoneType",
    ),
}


@pytest.fixture(scope="session")
def answers(site: Path) -> dict[str, list[str]]:
    return dict(zip(CASES, ask(site, *CASES), strict=True))


@pytest.mark.parametrize("name", CASES)
def test_loading(answers: dict[str, list[str]], name: str) -> None:
    kind, words, cause = CASES[name]
    found = answers[name]
    assert found[0] == kind, found
    for word in words:
        assert word in found[1]
    if cause:
        assert found[2] == cause


def test_a_failure_is_the_same_when_asked_again(site: Path) -> None:
    """Nothing half registered stays behind: neither the plugin nor the backend it had added."""
    first, again = ask(site, "halfway", "halfway")
    assert first == again
    first, good, again = ask(site, "silent", "example", "silent")
    assert first == again
    assert good[0] == "ok"


def test_first_party_name_says_what_to_install(site: Path) -> None:
    code = """
from tile_core.registry import Registry
try:
    Registry(lambda: ()).get("rocm")
except Exception as error:
    print(type(error).__name__, error)
"""
    assert python(site, code).split("\n")[:2] == [
        "BackendNotFound no backend named 'rocm'; installed: none",
        "   = help: pip install tile-backend-rocm",
    ]


def test_switched_off(site: Path) -> None:
    found = ask(site, "example", "importfails", TILE_DISABLE_BACKENDS="example, other")
    assert found[0][0] == "BackendNotFound"
    assert "TILE_DISABLE_BACKENDS" in found[0][1]
    assert found[1][0] == "BackendLoadFailed"


def test_listing_never_raises(site: Path) -> None:
    rows = json.loads(python(site, STATUSES, TILE_DISABLE_BACKENDS="silent"))
    states = {name: row[0] for name, row in rows.items()}
    assert states["example"] == "ok"
    assert states["newapi"] == states["tooold"] == "incompatible"
    assert states["silent"] == "disabled"
    assert {states[n] for n in ("importfails", "misspelt", "halfway", "unannounced", "twice", "sick")} == {
        "broken"
    }
    assert rows["sick"][1] == "OSError: the driver hung up"
    assert rows["example"][1:] == ["this process", "tile-backend-example 0.1.0"]
    assert states.keys() >= {"cuda", "rocm", "metal", "ascend", "webgpu", "cutedsl"}


def test_discovery_imports_no_backend(site: Path) -> None:
    code = """
import sys
from tile_core.registry import Registry
names = Registry().names()
assert "example" in names and "importfails" in names, names
print([m for m in sys.modules if m.startswith("tile_backend")])
"""
    assert python(site, code).strip() == "[]"
