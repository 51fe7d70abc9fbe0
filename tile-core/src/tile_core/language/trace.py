"""From a Python function to a tile program: run its rewritten form once, with a builder in place of a device."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping
from functools import cached_property, update_wrapper
from types import FrameType, FunctionType
from typing import TYPE_CHECKING, Any

from ..dtypes import HANDLE, DType, dtype
from ..errors import KernelError
from ..expr import Buffer, Space, Var
from ..program import Param, TileProgram
from ..program.verify import verify
from ..span import Span
from .builder import Builder
from .locate import located
from .source import Rewritten, instantiate, parsed
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

    def __deepcopy__(self, memo: Any) -> PrimFunc:
        return self

    def __reduce__(self) -> Any:
        raise KernelError(
            f"the kernel {self.name} cannot be pickled",
            why="it is made from Python source",
            help="import the function that makes it in the other process",
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
        _written_out(function, form)
        names = function.__code__.co_varnames[: function.__code__.co_argcount]
        values = [_parameter(b, n, annotations, form) for n in names]
        call(*values)
    program = TileProgram(kernel.name, tuple(b.params), tuple(b.scopes[0].body), span=form.function)
    verify(program)
    return program


def _written_out(function: FunctionType, form: Rewritten) -> None:
    """Raise ``KernelError`` if the kernel has parameters that a caller gives by name only, or any number of."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    for p in inspect.signature(function, follow_wrapped=False).parameters.values():
        if p.kind not in kinds:
            raise KernelError(
                f"the parameter {str(p).partition(':')[0]} of {function.__name__} is passed by name, or is any number of them",
                form.function,
                help="a kernel's parameters are plain: kernel(A: T.Tensor(...), B: T.Tensor(...))",
            )


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
            form.params[name],
            help=f"write {name}: T.Tensor((M, N), dtype), or a scalar type such as {name}: T.int32",
        )
    if annotations[name] is None:
        return None  # the kernel has no such parameter
    return add_parameter(b, name, annotations[name], form.params[name])


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
    given, distinct = annotation.strides, annotation.distinct
    return Buffer(name, annotation.shape, annotation.dtype, Space.GLOBAL, given, span=span, distinct=distinct)


__all__ = ["PrimFunc", "add_parameter", "build", "prim_func", "tensor_buffer"]
