"""Parse the command line and hand over to one command's module. Nothing heavy is imported for ``--help``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module

from ..errors import TileError


@dataclass(frozen=True)
class Command:
    """A command: the module of this package that has its ``arguments`` and ``run``, and one line about it."""

    name: str
    module: str
    about: str


COMMANDS = (
    Command("doctor", "doctor", "check the installation, backends and devices"),
    Command("targets", "targets", "what can be compiled for"),
    Command("devices", "devices", "what kernels can run on here"),
    Command("inspect", "inspect", "show a kernel: its program, graph, plan, schedule, ir or source"),
    Command("verify", "verify", "what must hold of a kernel, and whether it was proved"),
    Command("run", "run", "run a kernel on random tensors and compare it with the interpreter"),
    Command("bench", "bench", "measure a kernel"),
    Command("export", "export", "compile a kernel into a folder that `tile.load` runs without a compiler"),
    Command("cache", "cache", "the cache of compiled kernels"),
    Command("conformance", "conformance", "run the conformance kit on a backend"),
    Command("new-backend", "new_backend", "write the package of a backend to begin with"),
)


def parser() -> argparse.ArgumentParser:
    out = argparse.ArgumentParser(prog="tile", description="tile: kernels at the level of tiles")
    out.add_argument("--version", action="store_true", help="print the version")
    commands = out.add_subparsers(dest="command", metavar="COMMAND")
    for c in COMMANDS:
        sub = commands.add_parser(c.name, help=c.about, description=c.about)
        sub.add_argument("--json", action="store_true", help="print JSON instead of a table")
        import_module(f".{c.module}", __package__).arguments(sub)
    return out


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; gives the exit status."""
    options = parser().parse_args(arguments)
    if options.version:
        from .. import __version__

        print(__version__)
        return 0
    if options.command is None:
        parser().print_help()
        return 2
    module = next(c.module for c in COMMANDS if c.name == options.command)
    try:
        return import_module(f".{module}", __package__).run(options)
    except TileError as error:
        print(error, file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader of a pipe went away
        return 0
