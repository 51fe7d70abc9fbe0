"""The documents name what there is: hooks, settings, commands, public names; links lead somewhere, code parses."""

from __future__ import annotations

import ast
import inspect
import re

import pytest
from tracked import ROOT, files

import tile_core
from tile_core import backend, hardware, hookspecs, settings
from tile_core.cli.main import COMMANDS

DOCS = ROOT / "docs"
PAGES = [f for f in files() if f.suffix == ".md"]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.M | re.S)


def page(name: str) -> str:
    return (DOCS / name).read_text("utf8")


def own(module, kind) -> list[str]:
    """Public names of a kind that a module defines itself."""
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and kind(value) and getattr(value, "__module__", "") == module.__name__
    ]


def test_every_hook_with_its_signature():
    text = page("backend_api.md")
    for name in own(hookspecs, inspect.isfunction):
        if name.startswith("tile_"):
            assert f"{name}{inspect.signature(getattr(hookspecs, name))}".replace("'", "") in text


@pytest.mark.parametrize("module", [backend, hardware], ids=["backend", "hardware"])
def test_every_name_of_the_seam(module):
    text = page("backend_api.md")
    missing = [name for name in own(module, inspect.isclass) if f"`{name}" not in text]
    assert not missing


def test_every_method_of_a_backend():
    text = page("backend_api.md")
    methods = [n for n, v in vars(backend.Backend).items() if inspect.isfunction(v) and not n.startswith("_")]
    assert not [n for n in methods if f"`{n}(" not in text]


def test_version_of_the_interface_is_logged():
    assert f"| {backend.API.major}.{backend.API.minor} |" in page("backend_api.md")


def test_settings_table():
    """The table is the one that the code makes."""
    rows = [f"| `{settings.variable_name(name)}` | {meaning} |" for name, meaning in settings.MEANING.items()]
    assert "\n".join(rows) in page("settings.md")
    assert set(settings.MEANING) == set(settings.Settings.__dataclass_fields__)


def test_every_command():
    text = page("cli.md")
    assert not [c.name for c in COMMANDS if f"| `tile {c.name}" not in text]
    assert set(re.findall(r"^\| `tile ([\w-]+)", text, re.M)) == {c.name for c in COMMANDS}


def test_every_public_name():
    text = "\n".join(p.read_text("utf8") for p in DOCS.glob("*.md"))
    missing = [n for n in getattr(tile_core, "__all__", ()) if not re.search(rf"\b{re.escape(n)}\b", text)]
    assert not missing


@pytest.mark.parametrize("file", PAGES, ids=lambda f: str(f.relative_to(ROOT)))
def test_links_lead_somewhere(file):
    text = FENCE.sub("", file.read_text("utf8"))
    for link in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
        if "://" not in link and not link.startswith("mailto:"):
            assert (file.parent / link).exists(), link


@pytest.mark.parametrize("file", PAGES, ids=lambda f: str(f.relative_to(ROOT)))
def test_python_in_documents_parses(file):
    for language, code in FENCE.findall(file.read_text("utf8")):
        if language == "python":
            ast.parse(code)


def test_every_page_is_reachable():
    start = (
        page("architecture.md") + (ROOT / "README.md").read_text("utf8")
        if (ROOT / "README.md").is_file()
        else page("architecture.md")
    )
    assert not [p.name for p in DOCS.glob("*.md") if p.name not in start and p.name != "architecture.md"]


def test_every_name_of_the_language_with_its_first_line():
    """The tables of docs/language.md are the first lines of the docstrings."""
    import tile_core.language as language

    text = page("language.md")
    for name in language.__all__:
        value = getattr(language, name)
        if inspect.isfunction(value) and value.__name__ == name and name != "dtype":
            first = (inspect.getdoc(value) or "").split("\n")[0].replace("|", "\\|")
            assert f"| `T.{name}` | {first} |" in text, name
