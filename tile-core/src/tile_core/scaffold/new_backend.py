"""Copies the template of a backend's package, with the name of the new one in the place of the template's."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator
from pathlib import Path

from ..errors import Unsupported
from ..registry import Registry

TEMPLATE = Path(__file__).parent / "template"
WORD = "newchip"  # how the template names itself
NAME = re.compile(r"[a-z][a-z0-9]*")


def new_backend(name: str, folder: Path | None = None) -> Path:
    """Write the package ``tile-backend-NAME`` into ``folder`` (by default one of that name, here); gives the folder.

    Raises:
        Unsupported: a name that no backend can have or that another one has, a folder that is not empty.
    """
    _check(name)
    folder = Path(f"tile-backend-{name}") if folder is None else folder
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise Unsupported(f"{folder} is there already", help="name a folder that is empty or not there yet")
    for source in sorted(p for p in TEMPLATE.rglob("*") if p.is_file() and "__pycache__" not in p.parts):
        target = folder / _named(str(source.relative_to(TEMPLATE)), name)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(_named(source.read_text("utf8"), name), "utf8")
    return folder


def files(folder: Path) -> Iterator[Path]:
    """What ``new_backend`` wrote, in order."""
    yield from sorted(p for p in folder.rglob("*") if p.is_file())


def _check(name: str) -> None:
    if not NAME.fullmatch(name) or keyword.iskeyword(name):
        raise Unsupported(
            f"{name!r} cannot be the name of a backend",
            why="it becomes part of a module's name and of targets such as `name:arch`",
            help="use lower-case letters and digits, a letter first",
        )
    taken = {s.name: s.distribution for s in Registry().statuses() if s.state != "not installed"}
    if name in taken:
        raise Unsupported(
            f"the backend {name!r} is there already, from {taken[name]}", help="choose another name"
        )


def _named(text: str, name: str) -> str:
    return text.replace(WORD, name).replace(WORD.capitalize(), name.capitalize())
