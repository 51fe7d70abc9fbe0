"""The source of a user's function, and its builder form compiled under the user's file name and positions.

Python's own tracebacks of the compiled form point at the user's lines.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from types import CodeType, FunctionType
from typing import Any

from ..errors import KernelError
from ..span import Span
from . import definitions
from .rewrite import BUILDER, Rewriter, arguments_of, strip_annotations


@dataclass(frozen=True)
class Parsed:
    """A function's source, its AST, and where it stands. Nobody changes ``node``."""

    source: str
    file: str
    first_line: int
    node: ast.FunctionDef

    def copy(self) -> ast.FunctionDef:
        """The AST once more, to be changed."""
        return _tree(self.source, self.first_line)


@dataclass(frozen=True)
class Rewritten:
    """``code`` defines ``make(builder, *names)``, which returns the rewritten function.

    ``spans`` are those that generated calls name by number; ``params`` those of the parameters; ``function`` that of the name.
    """

    code: CodeType
    spans: tuple[Span, ...]
    names: tuple[str, ...]
    params: Mapping[str, Span]
    function: Span


class _Same:
    """A code object as a key that is equal to itself only.

    Python calls two code objects equal if their instructions are: functions of two files or notebook cells whose
    annotations alone differ would share one source.
    """

    def __init__(self, code: CodeType) -> None:
        self.code = code

    def __hash__(self) -> int:
        return id(self.code)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.code is self.code


def parsed(code: CodeType) -> Parsed:
    """The source and AST of a function's code.

    Raises:
        KernelError: the source cannot be had (typed at a plain interactive prompt, or compiled from a string).
    """
    return _parsed(_Same(code))


@lru_cache(maxsize=1024)
def _parsed(key: _Same) -> Parsed:
    code = key.code
    try:
        found, first = definitions.lines(code)
    except (OSError, TypeError) as error:
        raise KernelError(
            f"the source of {code.co_name} cannot be read: {error}",
            why="a kernel is built from its Python source",
            help="define it in a file or a notebook cell",
        ) from error
    source = "".join(found)
    node = _tree(source, first)
    if not isinstance(node, ast.FunctionDef):
        raise KernelError(f"{code.co_name} is not a plain function (def)")
    return Parsed(source, code.co_filename, first, node)


def _tree(source: str, first: int) -> Any:
    """The first statement of ``source``, whose positions are those of the file: it begins at line ``first`` there."""
    if not source[:1].isspace():
        return ast.parse("\n" * (first - 1) + source).body[0]
    inside = ast.parse("\n" * (first - 2) + "if True:\n" + source).body[0]
    assert isinstance(inside, ast.If)
    return inside.body[0]


def rewritten(code: CodeType, names: tuple[str, ...]) -> Rewritten:
    """The builder form of a function. ``names`` are what its surroundings define, made parameters of ``make``."""
    return _rewritten(_Same(code), names)


@lru_cache(maxsize=512)
def _rewritten(key: _Same, names: tuple[str, ...]) -> Rewritten:
    source = parsed(key.code)
    rewriter = Rewriter(source.file, source.node.name)
    try:
        function = rewriter.function(source.copy())
    except RecursionError:
        raise KernelError(
            f"an expression or block of {source.node.name} is nested too deeply",
            rewriter.place(source.node),
            help="split it into several statements",
        ) from None
    function.decorator_list = []
    annotations = strip_annotations(function)
    make = ast.FunctionDef(
        name="__tile_make__",
        args=arguments_of((BUILDER, "__tile_annotations__", *names)),
        body=[*_annotation_code(annotations), function, _return(ast.Name(function.name, ast.Load()))],
        decorator_list=[],
        returns=None,
    )
    make.type_params = []  # type: ignore[attr-defined]  a field from Python 3.12 on
    module = ast.Module([make], [])
    ast.copy_location(make, source.node)
    ast.fix_missing_locations(module)  # from the nearest user node around them
    compiled = compile(module, source.file, "exec")
    arguments = source.node.args
    params = {
        a.arg: rewriter.place(a) for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    }
    return Rewritten(compiled, tuple(rewriter.spans), names, params, _name_of(source.node, rewriter))


def _name_of(node: ast.FunctionDef, rewriter: Rewriter) -> Span:
    """The place of ``def name``."""
    whole = rewriter.place(node)
    line = whole.line
    return replace(whole, end_line=line, end_column=whole.column + len("def ") + len(node.name))


def instantiate(
    fn: FunctionType, builder: Any, extra: dict[str, Any] | None = None
) -> tuple[Callable[..., Any], dict[str, Any], Rewritten]:
    """The builder form of ``fn`` bound to ``builder``, and the values of its parameters' annotations.

    ``extra`` are names of the defining scope that annotations may use although the function's closure lacks them
    (with ``from __future__ import annotations``).
    """
    scope = dict(extra or {})
    for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True):
        try:
            scope[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            scope.pop(name, None)
    form = rewritten(fn.__code__, tuple(sorted(scope)))
    namespace: dict[str, Any] = {}
    exec(form.code, fn.__globals__, namespace)
    annotations: dict[str, Any] = {}
    builder.spans = form.spans
    function = namespace["__tile_make__"](builder, annotations, *(scope[n] for n in form.names))
    defaults = fn.__defaults__ or ()
    function.__defaults__ = defaults
    function.__kwdefaults__ = fn.__kwdefaults__
    function.__qualname__ = fn.__name__
    return function, annotations, form


def _annotation_code(annotations: dict[str, ast.expr]) -> list[ast.stmt]:
    table = ast.Name("__tile_annotations__", ast.Load())
    return [
        ast.Assign([ast.Subscript(table, ast.Constant(name), ast.Store())], value)
        for name, value in annotations.items()
    ]


def _return(value: ast.expr) -> ast.Return:
    return ast.Return(value)
