"""Load a kernel from ``FILE:NAME`` with the values and tensors given on the command line."""

from __future__ import annotations

import argparse
import ast
import importlib.util
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from ..errors import KernelError, did_you_mean
from ..language.trace import PrimFunc
from ..runtime import Jit, Kernel, compile, spec

TENSOR = re.compile(r"(\w+)\[([\d,\s]*)\]$")


def load(options: argparse.Namespace) -> Kernel:
    """The kernel that the options name, not yet compiled.

    Raises:
        KernelError: no such file or kernel, or arguments that do not fit.
    """
    file, _, name = options.kernel.rpartition(":")
    if not file:
        raise KernelError(
            f"{options.kernel!r} names no kernel", help="write FILE:KERNEL, as in examples/matmul.py:matmul"
        )
    module = _module(Path(file))
    if not hasattr(module, name):
        known = [n for n, v in vars(module).items() if isinstance(v, (PrimFunc, Jit, Kernel))]
        raise KernelError(
            f"{file} has no kernel {name!r}",
            help=did_you_mean(name, known) or f"it has: {', '.join(known) or 'none'}",
        )
    return made(getattr(module, name), options.arg, options.target, module)


def made(found: Any, given: Sequence[str], target: str | None, module: ModuleType | None = None) -> Kernel:
    """A kernel from what a module holds. Arguments that are not given are taken from the module's ``EXAMPLE``, if it has them."""
    values = {k: _value(v) for k, v in (_pair(g) for g in given)}
    match found:
        case Kernel():
            return found
        case PrimFunc():
            return compile(found, target=target)
        case Jit():
            example = getattr(module, "EXAMPLE", {}).get(found.function.__name__, {})
            kernel, _ = found.kernel((), {**example, **values}, target)
            return kernel
        case _:
            raise KernelError(f"{found!r} is no kernel", help="mark it with @T.prim_func or @tile.jit")


def _module(path: Path) -> ModuleType:
    if not path.is_file():
        raise KernelError(f"there is no file {path}")
    name = f"tile_inspected_{path.stem}"
    found = importlib.util.spec_from_file_location(name, path)
    if found is None or found.loader is None:
        raise KernelError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(found)
    sys.modules[name] = module
    sys.path.insert(0, str(path.parent))
    found.loader.exec_module(module)
    return module


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise KernelError(f"--arg {text!r} has no value", help="write --arg NAME=VALUE")
    return name.strip(), value.strip()


def _value(text: str) -> Any:
    if m := TENSOR.match(text):
        return spec(tuple(int(n) for n in m[2].split(",") if n.strip()), m[1])
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
