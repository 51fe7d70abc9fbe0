"""Kernels as web pages: takes a kernel and a folder, writes the files of a backend whose kernels run in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from .. import settings
from ..backend import Backend, WritesPage
from ..errors import TileError, Unsupported
from ..hardware import Target
from ..registry import registry

if TYPE_CHECKING:
    from .compiled import Kernel


def export_web(kernel: Kernel, folder: Path) -> Path:
    """Write the page. A target that is named without architecture is the backend's first, which asks least of a browser.

    Raises:
        Unsupported: no backend here writes pages, or the one that is named does not.
        TileError: the folder cannot be written.
    """
    asked = kernel.wanted or settings.current().target
    wanted = Target.parse(asked) if isinstance(asked, str) else asked
    backend, writer = _writer(wanted)
    arch = wanted.arch if wanted and wanted.arch else backend.targets()[0].target.arch
    entry = kernel.for_target(Target(backend.name, arch, wanted.options if wanted else ())).entry
    files = writer.page(kernel.name, entry.source, entry.artifact)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in files.items():
            (folder / name).write_bytes(data)
    except OSError as error:
        raise TileError(f"the page cannot be written to {folder}: {error}") from error
    return folder


def _writer(wanted: Target | None) -> tuple[Backend, WritesPage]:
    """The backend that is named, or the first that writes pages."""
    named = registry().get(wanted.backend) if wanted else None
    for backend in registry().usable() if named is None else (named,):
        if isinstance(backend, WritesPage):
            return backend, backend
    who = f"backend {named.name!r}" if named else "no backend here"
    raise Unsupported(
        f"{who} {'does not write' if named else 'writes'} web pages",
        help="install and name one whose kernels run in a browser",
    )
