"""Eager kernels: tensors are declared inside, dimensions are solved from the arguments of a call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from ..dtypes import DType
from ..errors import KernelError
from ..expr import Buffer, Expr, Space, Var, dim
from ..expr.affine import linear
from ..program import Param, TileProgram
from ..program.verify import verify
from ..span import Span
from .builder import Builder
from .locate import located
from .several import several
from .source import instantiate
from .tiles import Tile
from .trace import tensor_buffer
from .types import Tensor, dynamic


class _Solved(BaseException):  # no mistake: what turns exceptions into errors lets it pass
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
        found = dynamic(names, type)
        vars = several(found)
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
        known: dict[Expr, int] = {
            t: into[t.name] for t in form.terms if isinstance(t, Var) and t.name in into
        }
        rest = form.constant + sum(known[t] * f for t, f in form.terms.items() if t in known)
        open_ = [(t, f) for t, f in form.terms.items() if t not in known]
        var, factor = open_[0] if len(open_) == 1 else (None, 1)
        if isinstance(var, Var):
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
