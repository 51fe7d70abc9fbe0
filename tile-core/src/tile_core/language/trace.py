"""From a Python function to a tile program: run its rewritten form once, with a builder in place of a device."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, update_wrapper
from types import FrameType, FunctionType, TracebackType
from typing import TYPE_CHECKING, Any

from ..dtypes import HANDLE, DType, dtype
from ..errors import KernelError, TileError, did_you_mean
from ..expr import Buffer, Expr, Space, Var
from ..expr.affine import linear
from ..program import Param, TileProgram
from ..program.verify import verify
from ..span import Span
from .builder import Builder
from .rewrite import Rewritten, instantiate, parsed
from .tiles import Tile
from .types import Pointer, Tensor


class PrimFunc:
    """A kernel as a user wrote it. ``program`` builds its tile program, once."""

    def __init__(self, function: FunctionType, scope: Mapping[str, Any] | None = None) -> None:
        self.function = function
        self.scope = dict(scope or {})
        update_wrapper(self, function)

    @property
    def name(self) -> str:
        return self.function.__name__

    @cached_property
    def program(self) -> TileProgram:
        """The tile program. Raises ``KernelError`` at the user's line."""
        return build(self)

    def scope_values(self) -> dict[str, Any]:
        """Values of the defining scope that the kernel's source names."""
        return _needed(self.function, self.scope)

    def __call__(self, *_: Any, **__: Any) -> Any:
        raise KernelError(
            f"{self.name} is a kernel, not yet compiled",
            help="return it from a @tile.jit function, or tile.compile it",
        )

    def __repr__(self) -> str:
        return f"<kernel {self.name}>"


if TYPE_CHECKING:
    # annotations of a kernel are values (T.Tensor((M, K), dtype)), which type checkers would refuse
    from typing import no_type_check as prim_func
else:

    def prim_func(function: FunctionType) -> PrimFunc:
        """Mark a function as a kernel: ``@T.prim_func``. Its parameters are annotated with tensors and scalar types."""
        if not isinstance(function, FunctionType):
            raise KernelError(f"@T.prim_func marks a function, not {function!r}")
        frame: FrameType | None = sys._getframe(1)
        return PrimFunc(
            function, {} if frame is None or frame.f_globals is frame.f_locals else frame.f_locals
        )


def build(kernel: PrimFunc) -> TileProgram:
    """The tile program of a kernel with annotated parameters, verified."""
    b = Builder()
    function = kernel.function
    with b.active(), located(function.__code__.co_filename):
        call, annotations, form = instantiate(function, b, _needed(function, kernel.scope))
        names = function.__code__.co_varnames[: function.__code__.co_argcount]
        values = [_parameter(b, n, annotations, form) for n in names]
        call(*values)
    program = TileProgram(kernel.name, tuple(b.params), tuple(b.scopes[0].body), span=form.function)
    verify(program)
    return program


def _needed(function: FunctionType, scope: Mapping[str, Any]) -> dict[str, Any]:
    """Names of the defining scope that the function's source uses (in annotations that are kept as text)."""
    import ast

    used = {n.id for n in ast.walk(parsed(function.__code__).node) if isinstance(n, ast.Name)}
    texts = [n.value for n in ast.walk(parsed(function.__code__).node.args) if isinstance(n, ast.Constant)]
    for t in (t for t in texts if isinstance(t, str)):
        used |= (
            {n.id for n in ast.walk(ast.parse(t, mode="eval")) if isinstance(n, ast.Name)}
            if t.strip()
            else set()
        )
    return {k: v for k, v in scope.items() if k in used}


def _parameter(b: Builder, name: str, annotations: Mapping[str, Any], form: Rewritten) -> Any:
    if name not in annotations:
        raise KernelError(
            f"parameter {name} has no annotation",
            form.function,
            help=f"write {name}: T.Tensor((M, N), dtype), or a scalar type such as {name}: T.int32",
        )
    return add_parameter(b, name, annotations[name], form.function)


def add_parameter(b: Builder, name: str, annotation: Any, span: Span | None) -> Any:
    """Add a parameter to the builder; gives what the kernel's variable holds."""
    match annotation:
        case Tensor():
            buffer = tensor_buffer(name, annotation, span)
            b.params.append(Param(name, buffer, span))
            return Tile(buffer)
        case Pointer():
            var = Var(name, HANDLE, span=span)
        case DType():
            var = Var(name, annotation, b.unique(name), span=span)
        case _ if annotation in (int, float, bool):
            var = Var(name, dtype(annotation), b.unique(name), span=span)
        case str() | type():
            var = Var(name, dtype(annotation), b.unique(name), span=span)
        case _:
            raise KernelError(
                f"parameter {name} is annotated with {annotation!r}, which is no type of T", span
            )
    b.params.append(Param(name, var, span))
    return var


def tensor_buffer(name: str, annotation: Tensor, span: Span | None) -> Buffer:
    return Buffer(name, annotation.shape, annotation.dtype, Space.GLOBAL, annotation.strides, span=span)


class _Solved(Exception):
    """All constants of an eager kernel are known: build again with them."""


@dataclass(frozen=True)
class TensorFacts:
    """What an eager kernel knows of a tensor it is called with."""

    shape: tuple[int, ...]
    dtype: DType


class EagerBuilder(Builder):
    """Builds an eager kernel: tensors are declared inside it, constants are solved from the arguments."""

    def __init__(self, known: Mapping[str, int]) -> None:
        super().__init__()
        self.known = dict(known)
        self.wanted: dict[str, Span | None] = {}
        self.solved: dict[str, int] = {}
        self.declared: dict[str, Tile] = {}

    def constants(self, names: str, type: DType) -> Any:
        from .types import dynamic

        found = dynamic(names, type)
        vars = found if isinstance(found, tuple) else (found,)
        for v in vars:
            self.wanted.setdefault(v.name, self.span())
        values = tuple(self.known.get(v.name, v) for v in vars)
        return values[0] if len(values) == 1 else values

    def declare(self, name: str, annotation: Any, old: Any) -> Any:
        if not isinstance(old, Argument):
            raise KernelError(
                f"{name} is declared as a tensor, but it is no parameter of the kernel", self.span()
            )
        buffer = tensor_buffer(old.name, annotation, self.span())
        old.declared = Tile(buffer)
        if old.facts is not None:
            solve_dimensions(old.name, annotation.shape, old.facts.shape, self.solved, self.span())
            if old.facts.dtype != annotation.dtype:
                raise KernelError(
                    f"{old.name} is declared {annotation.dtype}, the argument is {old.facts.dtype}",
                    self.span(),
                )
        self.declared[old.name] = old.declared
        if self.wanted and not self.known and self.wanted.keys() <= self.solved.keys():
            raise _Solved
        return old.declared

    def output(self, shape: Sequence[Any], type: DType) -> Tile:
        from ..expr import dim

        name = self.take_hint(f"out{len(self.outputs)}")
        buffer = Buffer(name, tuple(dim(d) for d in shape), type, Space.GLOBAL, span=self.span())
        self.outputs.append(buffer)
        self.fresh.add(id(buffer))
        return Tile(buffer)


@dataclass
class Argument:
    """A tensor parameter of an eager kernel before its declaration."""

    name: str
    facts: TensorFacts | None
    declared: Tile | None = None

    def as_expr(self) -> Expr:
        raise KernelError(
            f"{self.name} is used before it is declared",
            help=f"declare it first: {self.name}: T.Tensor((M, N), dtype)",
        )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.as_expr()


def solve_dimensions(
    name: str, declared: Sequence[int | Expr], actual: Sequence[int], into: dict[str, int], span: Span | None
) -> None:
    """Values of symbolic dimensions from an actual shape, by linear equations in one unknown.

    Raises:
        KernelError: the rank or a known extent differs, or two tensors disagree about a dimension.
    """
    if len(declared) != len(actual):
        raise KernelError(f"{name} has {len(declared)} dimensions, the argument has {len(actual)}", span)
    for n, (want, have) in enumerate(zip(declared, actual, strict=True)):
        if isinstance(want, int):
            if want != have:
                raise KernelError(f"dimension {n} of {name} is {want}, the argument has {have}", span)
            continue
        form = linear(want)
        rest = form.constant + sum(
            into[t.name] * f for t, f in form.terms if isinstance(t, Var) and t.name in into
        )
        open_ = [(t, f) for t, f in form.terms if not (isinstance(t, Var) and t.name in into)]
        if len(open_) == 1 and isinstance(open_[0][0], Var):
            var, factor = open_[0]
            if (have - rest) % factor:
                raise KernelError(f"dimension {n} of {name} is {have}: no whole {var.name} gives that", span)
            into[var.name] = (have - rest) // factor
        elif not open_ and rest != have:
            raise KernelError(
                f"dimension {n} of {name} is {have}, but the other arguments make it {rest}", span
            )


def build_eager(
    function: FunctionType, tensors: Mapping[str, TensorFacts | None], static: Mapping[str, Any]
) -> TileProgram:
    """The program of an eager kernel for given tensors (by parameter name) and Python values of the other parameters."""
    known: dict[str, int] = {}
    for _ in range(2):
        b = EagerBuilder(known)
        try:
            with b.active(), located(function.__code__.co_filename):
                return _run_eager(b, function, tensors, static)
        except _Solved:
            known = dict(b.solved)
    raise KernelError(f"the dimensions of {function.__name__} cannot be solved")


def _run_eager(
    b: EagerBuilder,
    function: FunctionType,
    tensors: Mapping[str, TensorFacts | None],
    static: Mapping[str, Any],
) -> TileProgram:
    call, annotations, form = instantiate(function, b)
    names = function.__code__.co_varnames[
        : function.__code__.co_argcount + function.__code__.co_kwonlyargcount
    ]
    values: dict[str, Any] = {}
    arguments: dict[str, Argument] = {}
    for name in names:
        if name in tensors:
            values[name] = arguments[name] = Argument(name, tensors[name])
            if isinstance(annotations.get(name), Tensor):
                values[name] = b.declare(name, annotations[name], arguments[name])
        elif name in static:
            values[name] = static[name]
    call(**values)
    if missing := [n for n in b.wanted if n not in b.known]:
        raise KernelError(
            f"T.const {missing[0]!r} is in the shape of no tensor argument",
            b.wanted[missing[0]],
            help="declare a tensor with it: A: T.Tensor((M, K), dtype)",
        )
    for argument in arguments.values():
        if argument.declared is None:
            argument.as_expr()
    outputs = b.returned if b.returned is not None else []
    if len(outputs) != len(b.outputs):
        lost = [o.name for o in b.outputs if o not in outputs]
        raise KernelError(
            f"the output {lost[0]} is never returned", form.function, help=f"end with `return {lost[0]}`"
        )
    params = [
        Param(n, a.declared.buffer, a.declared.buffer.span)
        for n, a in arguments.items()
        if a.declared is not None
    ]
    params += [Param(o.name, o, o.span) for o in outputs]
    first = len(arguments)
    numbers = tuple(range(first, first + len(outputs)))
    program = TileProgram(
        function.__name__, tuple(params), tuple(b.scopes[0].body), numbers, span=form.function
    )
    verify(program)
    return program


@contextmanager
def located(file: str) -> Iterator[None]:
    """Give errors raised inside the place in the user's file where they come from."""
    try:
        yield
    except TileError as error:
        raise error.at(None if error.span else span_of(error.__traceback__, file)) from None
    except NameError as error:
        name = getattr(error, "name", None) or str(error).split("'")[1]
        span = span_of(error.__traceback__, file)
        scope = _scope_names(error.__traceback__, file)
        raise KernelError(f"the name {name!r} is not defined", span, help=did_you_mean(name, scope)) from None
    except AttributeError as error:
        span = span_of(error.__traceback__, file)
        if span is None or not isinstance(error.obj, (Tile, Expr, type(sys))):
            raise
        known = [n for n in dir(error.obj) if not n.startswith("_")]
        what = getattr(error.obj, "__name__", type(error.obj).__name__.lower())
        raise KernelError(
            f"{what} has no {error.name!r}", span, help=did_you_mean(error.name, known)
        ) from None


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


def span_of(trace: TracebackType | None, file: str) -> Span | None:
    """The innermost place of a traceback in ``file``: the expression from Python 3.11 on, the line before that."""
    frames = _frames(trace, file)
    if not frames:
        return None
    at = frames[-1]
    code, line = at.tb_frame.f_code, at.tb_lineno
    positions: Callable[[], Iterator[Any]] | None = getattr(code, "co_positions", None)
    if positions is not None:
        found = list(positions())[at.tb_lasti // 2]
        if None not in found:
            line, end_line, column, end_column = found
            return Span(
                file,
                line,
                _column(file, line, column),
                end_line,
                _column(file, end_line, end_column),
                code.co_name,
            )
    import linecache

    text = linecache.getline(file, line)
    stripped = text.strip()
    start = len(text) - len(text.lstrip()) + 1
    return Span(file, line, start, line, start + len(stripped), code.co_name)


def _column(file: str, line: int, offset: int) -> int:
    """Python counts columns in bytes of UTF-8; spans count characters from 1."""
    import linecache

    return len(linecache.getline(file, line).encode()[:offset].decode(errors="ignore")) + 1
