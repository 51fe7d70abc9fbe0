# /// script
# dependencies = ["nox>=2024.10"]
# ///
"""Sessions of development: `nox -s dev` makes the environment, plain `nox` runs tests, lint and typecheck."""

from __future__ import annotations

import shutil
from pathlib import Path

import nox

nox.needs_version = ">=2024.10"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.reuse_existing_virtualenvs = True
nox.options.sessions = ["tests", "lint", "typecheck"]

ROOT = Path(__file__).parent
BACKENDS = ("cuda", "rocm", "metal", "ascend", "webgpu", "cutedsl", "cpu", "interpreter", "example")
PACKAGES = ("tile-core", *(f"tile-backend-{name}" for name in BACKENDS[:6]))


def install(session: nox.Session) -> None:
    session.install("-r", "tests/requirements.txt")


@nox.session(venv_backend="none")
def dev(session: nox.Session) -> None:
    """Make `.venv` with every package editable and all tools."""
    session.run("python3", "-m", "venv", ".venv", external=True)
    pip = (".venv/bin/python", "-m", "pip", "install")
    session.run(*pip, "-r", "tests/requirements.txt", "nox>=2024.10", external=True)


@nox.session
def tests(session: nox.Session) -> None:
    """Everything that needs no device."""
    install(session)
    session.run("pytest", "-n", "2", *session.posargs)


@nox.session
@nox.parametrize("backend", BACKENDS, ids=BACKENDS)
def conformance(session: nox.Session, backend: str) -> None:
    """The conformance kit on one backend, such as `nox -s "conformance(cuda)"`."""
    install(session)
    kit = ("--pyargs", "tile_core.testing.conformance", "--tile-backend", backend)
    session.run("pytest", *kit, *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Style, the corridor of rooms, spelling, and the house rules."""
    install(session)
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("lint-imports")
    session.run("codespell")
    session.run("pytest", "tests/house", *session.posargs)


@nox.session
def typecheck(session: nox.Session) -> None:
    install(session)
    session.run("pyright", *session.posargs)


@nox.session
def docs(session: nox.Session) -> None:
    """Links, tables and code of the documents."""
    install(session)
    session.run("pytest", "tests/house/test_docs.py", "tests/house/test_readme.py", *session.posargs)


@nox.session
def build(session: nox.Session) -> None:
    """Wheels of all packages in `dist/`, installed into a clean environment and asked for their targets."""
    shutil.rmtree(ROOT / "dist", ignore_errors=True)
    session.install("build")
    for package in PACKAGES:
        session.run("python", "-m", "build", "--outdir", "dist", package)
    session.install(*map(str, sorted((ROOT / "dist").glob("*.whl"))))
    code = "from tile_core.registry import registry; [print(s.name, s.state) for s in registry().statuses()]"
    session.run("python", "-c", code)


@nox.session
def bench(session: nox.Session) -> None:
    """Every program of `benchmarks/`."""
    install(session)
    for program in sorted((ROOT / "benchmarks").glob("*.py")):
        session.run("python", str(program), *session.posargs)


if __name__ == "__main__":
    nox.main()
