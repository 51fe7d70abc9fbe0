"""The place in the user's file where an exception comes from."""

from __future__ import annotations

import builtins
import linecache
import re
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from types import ModuleType, TracebackType
from typing import Any

from ..errors import KernelError, TileError, did_you_mean
from ..expr import Expr
from ..span import Span
from .tiles import Tile

NAMES = {"tile_core.language": "T"}  # what users call a module


@contextmanager
def located(file: str) -> Generator[None, None, None]:
    """Give errors raised inside the place in the user's file where they come from."""
    try:
        yield
    except TileError as error:
        raise error.at(None if error.span else span_of(error.__traceback__, file)) from None
    except NameError as error:
        name = getattr(error, "name", None) or str(error).split("'")[1]
        span = span_of(error.__traceback__, file, name)
        scope = _scope_names(error.__traceback__, file)
        raise KernelError(f"the name {name!r} is not defined", span, help=did_you_mean(name, scope)) from None
    except AttributeError as error:
        missing = str(error.name)
        span = span_of(error.__traceback__, file, missing)
        if not isinstance(error.obj, (Tile, Expr, ModuleType)):
            raise _raised_by_python(error, file) from error
        known = getattr(error.obj, "__all__", None) or [n for n in dir(error.obj) if not n.startswith("_")]
        what = NAMES.get(getattr(error.obj, "__name__", ""), type(error.obj).__name__.lower())
        raise KernelError(f"{what} has no {missing!r}", span, help=did_you_mean(missing, known)) from None
    except RecursionError as error:
        span = span_of(error.__traceback__, file)
        why = "a kernel is built by running its Python code: a recursion must end while it is built"
        raise KernelError("a function calls itself without end", span, why=why) from None
    except Exception as error:
        raise _raised_by_python(error, file) from error


def _raised_by_python(error: Exception, file: str) -> KernelError:
    """What Python, or a function of the user, raised in a kernel's code."""
    foreign = isinstance(error, TypeError) and "ufunc" in str(error)
    return KernelError(
        f"{type(error).__name__}: {error}" if str(error) else type(error).__name__,
        span_of(error.__traceback__, file),
        why="this was raised while the kernel was built: its Python code runs once, then",
        help="numpy does not work on values of a kernel; use the functions of T" if foreign else "",
    )


def _frames(trace: TracebackType | None, file: str) -> list[TracebackType]:
    found: list[TracebackType] = []
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_filename == file:
            found.append(trace)
        trace = trace.tb_next
    return found


def _scope_names(trace: TracebackType | None, file: str) -> set[str]:
    names = set(dir(builtins))
    for t in _frames(trace, file)[-1:]:
        names |= {n for n in (*t.tb_frame.f_locals, *t.tb_frame.f_globals) if not n.startswith("__tile")}
    return names


def span_of(trace: TracebackType | None, file: str, name: str = "") -> Span | None:
    """The innermost place of a traceback in ``file``: the expression.

    Before Python 3.11 tracebacks know lines only: then the dotted word that ends in ``name`` on that line, else the line.
    """
    frames = _frames(trace, file)
    if not frames:
        return None
    at = frames[-1]
    code, line = at.tb_frame.f_code, at.tb_lineno
    positions: Callable[[], Iterator[Any]] | None = getattr(code, "co_positions", None)
    if positions is not None:
        found = list(positions())[at.tb_lasti // 2]
        if None not in found:
            line, last, column, end = found
            return Span(file, line, _column(file, line, column), last, _column(file, last, end), code.co_name)
    text = linecache.getline(file, line).rstrip("\n")
    word = re.search(rf"(?<![\w.])(?:\w+\.)*{re.escape(name)}\b", text) if name else None
    first, last = word.span() if word else (len(text) - len(text.lstrip()), len(text))
    return Span(file, line, first + 1, line, last + 1, code.co_name)


def _column(file: str, line: int, offset: int) -> int:
    """Python counts columns in bytes of UTF-8; spans count characters from 1."""
    return len(linecache.getline(file, line).encode()[:offset].decode(errors="ignore")) + 1
