"""The lines of a function's definition: from its code, by what Python's own parser says of the whole file.

``inspect.getsource`` finds the end of a block by a tokenizer written in Python, which takes milliseconds for each function, and
looks at the paths of all modules first.
"""

from __future__ import annotations

import ast
import inspect
import linecache
from collections.abc import Mapping
from functools import lru_cache
from types import CodeType


def lines(code: CodeType) -> tuple[list[str], int]:
    """The lines of a function, decorators included, and the number of the first.

    Raises:
        OSError: the source cannot be had.
        TypeError: the code belongs to no source.
    """
    linecache.checkcache(code.co_filename)
    file = linecache.getlines(code.co_filename)
    end = _ends("".join(file)).get(code.co_firstlineno)
    if end is None:
        return inspect.getsourcelines(code)
    return file[code.co_firstlineno - 1 : end], code.co_firstlineno


@lru_cache(maxsize=64)
def _ends(text: str) -> Mapping[int, int]:
    """Last line of each function by its first. One that is not the only one to begin there is left out."""
    try:
        tree = ast.parse(text)
    except SyntaxError:  # the file was changed since, or holds commands of a notebook
        return {}
    found: dict[int, list[int]] = {}
    work: list[ast.AST] = list(tree.body)
    while work:
        s = work.pop()
        if isinstance(s, ast.FunctionDef):
            first = min([s.lineno, *(d.lineno for d in s.decorator_list)])
            found.setdefault(first, []).append(s.end_lineno or first)
        for block in ("body", "orelse", "finalbody", "handlers", "cases"):
            work += getattr(s, block, ())
    return {first: ends[0] for first, ends in found.items() if len(ends) == 1}
