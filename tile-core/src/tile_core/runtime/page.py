"""Kernels as web pages: takes a kernel and a folder, writes the files of a backend whose kernels run in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from .. import settings
from ..backend import WritesPage
from ..errors import TileError, Unsupported
from ..hardware import Target
from ..registry import registry

if TYPE_CHECKING:
    from .compiled import Kernel


def export_web(kernel: Kernel, folder: Path) -> Path:
    """Write the page, for the kernel's own target or else for the one that asks least of a browser.

    Raises:
        Unsupported: no backend here writes pages.
        TileError: the folder cannot be written.
    """
    asked = kernel.wanted or settings.current().target or None
    target, writer = _writer(Target.parse(asked) if isinstance(asked, str) else asked)
    entry = kernel.for_target(target).entry
    files = writer.page(kernel.name, entry.source, entry.artifact)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in files.items():
            (folder / name).write_bytes(data)
    except OSError as error:
        raise TileError(f"the page cannot be written to {folder}: {error}") from error
    return folder


def _writer(wanted: Target | None) -> tuple[Target, WritesPage]:
    """Where the kernel runs here says nothing about a browser: a target of a backend without pages is passed over.

    Without architecture it is the backend's first.
    """
    named = [registry().get(wanted.backend)] if wanted else []
    for backend in (*named, *registry().usable()):
        if isinstance(backend, WritesPage):
            first = backend.targets()[0].target
            own = wanted if wanted and wanted.backend == backend.name else first
            return Target(backend.name, own.arch or first.arch, own.options), backend
    raise Unsupported("no backend here writes web pages", help="install one whose kernels run in a browser")
