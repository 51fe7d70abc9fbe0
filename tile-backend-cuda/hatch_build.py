"""Build hook: the native launcher as an extension for every Python from 3.10, or a pure wheel where no C compiler is.

A pure installation launches through ctypes: right, and slower. Only the wheel's tag tells them apart for installers.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOM = Path("src", "tile_backend_cuda", "launcher")
NAME = "_launch.abi3.so"
FLAGS = (
    "-O2",
    "-std=c11",
    "-fPIC",
    "-shared",
    "-fvisibility=hidden",
    "-Wall",
    "-Wextra",
    "-Wno-missing-field-initializers",
)


class LauncherHook(BuildHookInterface):
    """Compiles ``launcher/sources/launch.c``."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Editable installations find the extension among the sources, wheels get it from ``build``."""
        root = Path(self.root)
        editable = version == "editable"
        output = root / ROOM / NAME if editable else root / "build" / NAME
        reason = build(root / ROOM / "sources" / "launch.c", output)
        if reason:
            output.unlink(missing_ok=True)
            self.app.display_warning(
                f"the native launcher is not built: {reason}. Launches will go through ctypes."
            )
            return
        if not editable:
            build_data["force_include"][str(output)] = f"tile_backend_cuda/launcher/{NAME}"
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["pure_python"] = False
        build_data["tag"] = f"cp310-abi3-{platform}"


def build(source: Path, output: Path) -> str:
    """Compile the extension; gives "", or why it cannot be."""
    if not sys.platform.startswith("linux"):
        return f"it is for Linux, not {sys.platform}"
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        return "free-threaded Python has no limited interface"
    compiler = _compiler()
    if compiler is None:
        return "there is no C compiler"
    output.parent.mkdir(parents=True, exist_ok=True)
    include = sysconfig.get_path("include")
    command = [*compiler, *FLAGS, f"-I{include}", str(source), "-o", str(output)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        return str(error)
    return f"{shlex.join(command)}:\n{done.stderr}" if done.returncode else ""


def _compiler() -> list[str] | None:
    if named := os.environ.get("CC"):
        return shlex.split(named)
    found = next((path for name in ("cc", "gcc", "clang") if (path := shutil.which(name))), None)
    return [found] if found else None
