"""A fingerprint of a Python function: its source, and everything that it closes over, recursively.

It stands for the kernel in the cache's key, so that a warm kernel is found without building its program.
"""

from __future__ import annotations

import dataclasses
import enum
import hashlib
import inspect
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from ..dtypes import DType
from ..expr import Expr
from ..language import definitions
from ..language.macros import Macro
from ..language.trace import PrimFunc
from ..language.types import Pointer, Tensor


class Unknown(Exception):
    """A value of which nothing says when it is the same: the kernel is not cached on disk."""


def fingerprint(function: FunctionType, *more: Any) -> str:
    """Hexadecimal digest of a function and further values.

    Raises:
        Unknown: it closes over a value that has no stable description.
    """
    seen: dict[int, int] = {}
    digest = hashlib.sha256()
    for part in _parts(function, seen):
        digest.update(part.encode())
        digest.update(b"\0")
    for value in more:
        for part in _parts(value, seen):
            digest.update(part.encode())
            digest.update(b"\0")
    return digest.hexdigest()


def _parts(value: Any, seen: dict[int, int]) -> Iterator[str]:
    """Texts that together describe a value."""
    match value:
        case None | bool() | int() | float() | complex() | str() | bytes() | range() | slice():
            yield _written(value)
        case DType() | Expr() | Pointer() | enum.Enum():
            yield _written(value)
        case tuple() | list():
            yield from _sequence(value, seen)
        case set() | frozenset():
            yield _members(value)
        case dict() | Mapping():
            yield from _mapping(value, seen)
        case Tensor():
            yield f"tensor:{value.shape!r}:{value.dtype}:{value.strides!r}"
        case _:
            yield from _object(value, seen)


def _written(value: Any) -> str:
    return f"{type(value).__name__}:{value!r}"


def _sequence(value: Any, seen: dict[int, int]) -> Iterator[str]:
    yield f"{type(value).__name__}[{len(value)}"
    for item in value:
        yield from _parts(item, seen)


def _members(value: Any) -> str:
    return f"set{sorted(map(repr, value))}"


def _mapping(value: Any, seen: dict[int, int]) -> Iterator[str]:
    yield f"dict[{len(value)}"
    for key, item in value.items():
        yield from _parts(key, seen)
        yield from _parts(item, seen)


def _object(value: Any, seen: dict[int, int]) -> Iterator[str]:
    if id(value) in seen:
        yield f"again:{seen[id(value)]}"
        return
    match value:
        case FunctionType():
            seen[id(value)] = len(seen)
            yield from _function(value, seen)
        case MethodType():
            yield from _parts(value.__func__, seen)
            yield from _parts(value.__self__, seen)
        case Macro() | PrimFunc():
            yield from _parts(value.function, seen)
        case ModuleType():
            yield from _module(value, seen)
        case BuiltinFunctionType():
            yield f"builtin:{value.__module__}.{value.__qualname__}"
        case type():
            yield from _class(value, seen)
        case _ if dataclasses.is_dataclass(value):
            yield from _class(type(value), seen)
            for f in dataclasses.fields(value):
                yield f.name
                yield from _parts(getattr(value, f.name), seen)
        case _ if isinstance(getattr(value, "function", None), FunctionType) and hasattr(
            value, "_tile_options"
        ):
            yield from _parts(value.function, seen)
            yield from _parts(value._tile_options, seen)
        case _ if type(value).__module__.partition(".")[0] in ("numpy", "torch", "ml_dtypes"):
            if type(value).__name__ in ("ndarray", "Tensor"):
                raise Unknown(f"an array ({type(value).__name__})")
            yield _written(value)
        case _:
            raise Unknown(f"{type(value).__name__}")


def _function(f: FunctionType, seen: dict[int, int]) -> Iterator[str]:
    if _installed(f.__code__.co_filename):
        yield f"function:{f.__module__}.{f.__qualname__}:{_version(f.__module__)}"
        return
    try:
        found, _ = definitions.lines(f.__code__)
        yield "".join(found)
    except (OSError, TypeError) as error:
        raise Unknown(f"{f.__qualname__}, whose source cannot be read") from error
    yield from _parts(f.__defaults__, seen)
    yield from _parts(f.__kwdefaults__, seen)
    for name, cell in zip(f.__code__.co_freevars, f.__closure__ or (), strict=True):
        yield name
        try:
            content = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
        yield from _parts(content, seen)
    for name in sorted(_names(f.__code__)):
        if name in f.__globals__:
            yield name
            yield from _parts(f.__globals__[name], seen)


def _names(code: CodeType) -> set[str]:
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= _names(constant)
    return found


def _class(c: type, seen: dict[int, int]) -> Iterator[str]:
    yield f"class:{c.__module__}.{c.__qualname__}"
    if c.__module__ == "builtins" or _installed(getattr(sys.modules.get(c.__module__), "__file__", None)):
        yield _version(c.__module__)
        return
    if id(c) in seen:
        return
    seen[id(c)] = len(seen)
    try:
        yield inspect.getsource(c)
    except (OSError, TypeError) as error:
        raise Unknown(f"class {c.__qualname__}, whose source cannot be read") from error


def _module(m: ModuleType, seen: dict[int, int]) -> Iterator[str]:
    yield f"module:{m.__name__}"
    file = getattr(m, "__file__", None)
    if file is None or _installed(file):
        yield _version(m.__name__)
        return
    if id(m) in seen:
        return
    seen[id(m)] = len(seen)
    yield hashlib.sha256(Path(file).read_bytes()).hexdigest()
    for value in list(vars(m).values()):
        if isinstance(value, ModuleType):
            yield from _parts(value, seen)


@lru_cache(maxsize=4096)
def _installed(file: str | None) -> bool:
    """Whether a file belongs to Python, to an installed package, or to tile itself."""
    if file is None:
        return True
    places = [sysconfig.get_path(k) for k in ("stdlib", "platstdlib", "purelib", "platlib")]
    own = str(Path(__file__).resolve().parents[1])
    return any(str(file).startswith(p) for p in (*places, own) if p)


@lru_cache(maxsize=256)
def _version(module: str) -> str:
    """The version of an installed module's package, as far as it says one without an import."""
    top = sys.modules.get(module.partition(".")[0])
    return str(getattr(top, "__version__", ""))
