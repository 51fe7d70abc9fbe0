"""What a user sees when something goes wrong: short tracebacks for their mistakes, a folder to report for ours."""

from __future__ import annotations

import platform
import sys
import tempfile
import traceback
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import wraps
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import ParamSpec, TypeVar

from .. import settings
from ..errors import InternalError, TileError
from ..program import TileProgram
from ..program.text import text

PACKAGES = ("tile-core", "apache-tvm", "apache-tvm-ffi", "llvmlite", "numpy", "ml_dtypes", "z3-solver")


P = ParamSpec("P")
R = TypeVar("R")


def folded(function: Callable[P, R]) -> Callable[P, R]:
    """Errors of tile leave ``function`` without tile's own frames, unless ``TILE_TRACEBACK=full``."""

    @wraps(function)
    def call(*arguments: P.args, **keywords: P.kwargs) -> R:
        try:
            return function(*arguments, **keywords)
        except TileError as error:
            if settings.current().traceback == "full":
                raise
            raise error.with_traceback(None) from error.__cause__

    return call


@contextmanager
def reported(program: TileProgram, target: object) -> Generator[None, None, None]:
    """An exception that is none of ``TileError`` is a fault of tile: raise ``InternalError`` with a folder to report."""
    try:
        yield
    except TileError:
        raise
    except Exception as error:
        folder = write_report(program, target, error)
        raise InternalError(
            f"tile failed on {program.name} for {target}: {type(error).__name__}: {error}",
            program.span,
            why="this is a fault of tile, not of the kernel",
            help=f"please report it with the folder {folder}",
        ) from error


def write_report(program: TileProgram, target: object, error: BaseException) -> Path:
    """A folder with the program, the traceback and the versions of everything involved."""
    folder = Path(tempfile.mkdtemp(prefix=f"tile-report-{program.name}-"))
    (folder / "program.txt").write_text(text(program), encoding="utf8")
    (folder / "traceback.txt").write_text("".join(traceback.format_exception(error)), encoding="utf8")
    versions = [f"python {sys.version}", f"platform {platform.platform()}", f"target {target}"]
    versions += [f"{package} {_version(package)}" for package in PACKAGES]
    (folder / "versions.txt").write_text("\n".join(versions), encoding="utf8")
    return folder


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
