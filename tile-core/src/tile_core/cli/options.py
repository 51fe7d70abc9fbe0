"""Options that several commands share."""

from __future__ import annotations

import argparse

from ..errors import KernelError


def kernel(parser: argparse.ArgumentParser) -> None:
    """The options that name a kernel and its arguments."""
    parser.add_argument("kernel", metavar="FILE:KERNEL", help="a Python file and the name of a kernel in it")
    parser.add_argument(
        "--arg",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an argument of the factory or eager kernel: a Python value, or a tensor as float16[64,128]",
    )
    parser.add_argument("--target", help="cpu, or backend:arch as `tile targets` lists them")


def dims(parser: argparse.ArgumentParser) -> None:
    """Values of symbolic dimensions."""
    parser.add_argument(
        "--dim", action="append", default=[], metavar="NAME=VALUE", help="value of a symbolic dimension"
    )


def dim_values(options: argparse.Namespace) -> dict[str, int]:
    """The dimensions that were given. Raises ``KernelError`` for one that is not ``NAME=NUMBER``."""
    found: dict[str, int] = {}
    for given in options.dim:
        name, _, value = given.partition("=")
        if not value.strip().isdigit():
            raise KernelError(f"--dim {given!r} gives no number", help="write --dim NAME=128")
        found[name.strip()] = int(value)
    return found
