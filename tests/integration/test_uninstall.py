"""Backends come and go: in a fresh virtual environment each one is removed in turn, and all others still work."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BACKENDS = sorted(p.name.removeprefix("tile-backend-") for p in ROOT.glob("tile-backend-*"))

# Of each backend that is there: that it loads, and what it makes of a kernel for its first target, or why it makes nothing.
STATE = """
import json, numpy as np
from tile_core.errors import TileError
from tile_core.registry import registry
from tile_core.testing import stages
from tile_core.testing.kernels import BY_NAME
import gemm_relu
out = {}
for s in registry().statuses():
    if s.state in ("ok", "no device"):
        backend = registry().get(s.name)
        role = stages.role(lambda: backend.codegen(backend.targets()[0]))
        case = BY_NAME["gemm-float16-ragged"]
        out[s.name] = role if isinstance(role, str) else stages.emit(case, backend, backend.targets()[0]).text
    else:
        out[s.name] = f"{s.state}: {s.detail}"
a, b = np.ones((64, 64), np.float16), np.ones((64, 64), np.float16)
assert (np.asarray(gemm_relu.gemm_relu(64, 64, 64)(a, b)) == 64).all()
for name in NAMES:
    try:
        registry().get(name)
    except TileError as error:
        out[name + " error"] = str(error)
print(json.dumps(out))
"""


class Environment:
    """A virtual environment of its own."""

    def __init__(self, folder: Path) -> None:
        venv.create(folder, with_pip=True)
        self.python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
        self.cache = folder / "cache"

    def run(self, *arguments: str | Path) -> str:
        env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "TILE_TARGET")}
        env |= {"TILE_CACHE_DIR": str(self.cache), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        done = subprocess.run(
            [str(self.python), *map(str, arguments)],
            capture_output=True,
            text=True,
            env=env,
            cwd=ROOT / "examples",
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def state(self) -> dict[str, str]:
        return json.loads(self.run("-c", STATE.replace("NAMES", repr(BACKENDS))))


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All packages as they are published."""
    folder = tmp_path_factory.mktemp("wheels")
    packages = [ROOT / "tile-core", *(ROOT / f"tile-backend-{n}" for n in BACKENDS)]
    make = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", folder]
    done = subprocess.run([*map(str, make), *map(str, packages)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def environment(wheels: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    made = Environment(tmp_path_factory.mktemp("environment") / "venv")
    made.run("-m", "pip", "install", "-q", *sorted(wheels.glob("*.whl")), "pytest")
    return made


def dependents(name: str) -> set[str]:
    """Backends whose packages ask for that of ``name``: pip says on its removal that they need it."""
    asked = {n: metadata.requires(f"tile-backend-{n}") or () for n in BACKENDS}
    return {n for n, names in asked.items() if any(r.startswith(f"tile-backend-{name}") for r in names)}


def test_each_backend_can_go(environment: Environment, wheels: Path) -> None:
    whole = environment.state()
    assert set(BACKENDS) <= set(whole)
    assert not [k for k in whole if k.endswith(" error")]
    for name in BACKENDS:
        environment.run("-m", "pip", "uninstall", "-q", "-y", f"tile-backend-{name}")
        without = environment.state()
        error = without.pop(f"{name} error")
        assert f"pip install tile-backend-{name}" in error
        assert without.pop(name).startswith("not installed")
        for other in dependents(name):
            assert f"tile_backend_{name}" in without.pop(other)
        assert without == {k: v for k, v in whole.items() if k not in (name, *dependents(name))}
        (wheel,) = wheels.glob(f"tile_backend_{name}-*.whl")
        environment.run("-m", "pip", "install", "-q", "--no-deps", wheel)
    assert environment.state() == whole


def test_core_alone(environment: Environment, wheels: Path) -> None:
    """Last in this file: without any backend the target ``cpu`` and the interpreter are left."""
    environment.run("-m", "pip", "uninstall", "-q", "-y", *(f"tile-backend-{n}" for n in BACKENDS))
    state = environment.state()
    assert {k for k, v in state.items() if v.startswith("not installed")} == set(BACKENDS)
    assert "cpu" in state
    assert "interpreter" in state
