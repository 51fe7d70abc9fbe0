"""How many lines the kernels of the examples have: without blank lines, comments and docstrings.

python benchmarks/source_lines.py [EXAMPLE.py:FUNCTION ...]
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "examples"
KERNELS = ("mla_decode.py:decode", "flash_attention.py:attention")
NOTHING = (
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
)


def lines(path: Path, name: str) -> int:
    """Lines of the function ``name`` and of all that is defined in it, its decorators included."""
    text = path.read_text(encoding="utf8")
    found = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef) and n.name == name]
    if len(found) != 1:
        raise SystemExit(f"{path.name} has {len(found)} functions named {name}")
    (function,) = found
    first = min([function.lineno, *(d.lineno for d in function.decorator_list)])
    used: set[int] = set()
    for t in tokenize.generate_tokens(io.StringIO(text).readline):
        if t.type not in NOTHING:
            used.update(range(t.start[0], t.end[0] + 1))
    for n in ast.walk(function):
        if isinstance(n, ast.FunctionDef) and ast.get_docstring(n) is not None:
            used -= set(range(n.body[0].lineno, (n.body[0].end_lineno or 0) + 1))
    return len([n for n in used if first <= n <= (function.end_lineno or 0)])


if __name__ == "__main__":
    for kernel in sys.argv[1:] or KERNELS:
        file, _, name = kernel.partition(":")
        print(f"{kernel}: {lines(EXAMPLES / file, name)} lines")
