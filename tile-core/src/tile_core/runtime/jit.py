"""``@tile.jit`` and ``tile.compile``: from a user's function to a kernel that can be called, in both styles."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, update_wrapper
from types import FunctionType, MethodType, ModuleType
from typing import Any, overload

from .. import language
from ..dtypes import dtype
from ..errors import ArgumentError, KernelError, did_you_mean
from ..hardware import Target
from ..language.eager import TensorFacts, build_eager
from ..language.several import is_tuple
from ..language.source import parsed
from ..language.trace import PrimFunc, build
from ..program import TileProgram
from ..program.text import text
from .arguments import is_tensor, view
from .compiled import Kernel
from .failures import folded
from .fingerprint import Unknown, fingerprint
from .targeted import Request

# Options of other systems that have no meaning here, or are decided by inference: accepted, so that sources move over.
IGNORED = ("execution_backend", "target_host", "verbose", "debug_root_path", "compile_flags", "pass_configs")

# Functions of the language whose use in a function's own body makes it a kernel itself, not a factory of one.
EAGER_MARKS = frozenset(("Kernel", "const", "empty", "alloc_shared", "alloc_fragment", "copy"))


@overload
def jit(function: Callable[..., Any]) -> Jit: ...


@overload
def jit(
    *,
    out_idx: int | Sequence[int] | None = None,
    target: str | Target | None = None,
    debug: bool = False,
    **ignored: Any,
) -> Callable[[Callable[..., Any]], Jit]: ...


def jit(
    function: Callable[..., Any] | None = None,
    *,
    out_idx: int | Sequence[int] | None = None,
    target: str | Target | None = None,
    debug: bool = False,
    **ignored: Any,
) -> Any:
    """Mark a function as a kernel, or as a factory that returns one: ``@tile.jit`` or ``@tile.jit(out_idx=[-1])``.

    A *factory* takes Python values and returns a function marked ``@T.prim_func``; calling it gives a ``Kernel``. An *eager* kernel
    declares its tensors inside (``A: T.Tensor(...)``, ``C = T.empty(...)``, ``return C``); calling it runs it.
    ``out_idx``: parameters of a factory's kernel that are allocated and returned (negative numbers count from the end).
    ``target``: as in ``"cuda:sm_90a"``. ``debug``: run in the interpreter, where ``print`` and ``breakpoint()`` work.

    Raises:
        KernelError: an unknown option.
    """
    _known(ignored)
    where = "interpreter" if debug else target

    def mark(f: Callable[..., Any]) -> Jit:
        inner = f.function if isinstance(f, PrimFunc) else f
        if not isinstance(inner, FunctionType):
            raise KernelError(f"@tile.jit marks a function, not {f!r}")
        return Jit(inner, out_idx, where)

    return mark if function is None else mark(function)


def _known(options: Mapping[str, Any]) -> None:
    known = ("out_idx", "target", "debug", *IGNORED)
    for name in options:
        if name not in known:
            raise KernelError(f"jit has no option {name!r}", help=did_you_mean(name, known))


class Jit:
    """A kernel function or a factory of kernels. Kernels are remembered by their arguments."""

    def __init__(
        self,
        function: FunctionType,
        out_idx: int | Sequence[int] | None = None,
        target: str | Target | None = None,
    ) -> None:
        self.function = function
        self.out_idx = out_idx
        self.target = target
        self._kernels: dict[Any, Kernel] = {}
        update_wrapper(self, function)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """As a method, the instance is its first argument."""
        return self if instance is None else MethodType(self, instance)

    @property
    def _tile_options(self) -> tuple[Any, ...]:
        """What else decides about its kernels; part of the fingerprint of functions that use it."""
        return (
            self.out_idx if isinstance(self.out_idx, (int, type(None))) else tuple(self.out_idx),
            str(self.target),
        )

    @cached_property
    def is_eager(self) -> bool:
        """Whether the function is a kernel itself."""
        return _uses_language(self.function)

    @folded
    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """A factory: the kernel for these values. An eager kernel: run it, and give its outputs."""
        kernel, tensors = self.kernel(arguments, keywords)
        return kernel(*tensors) if self.is_eager else kernel

    @folded
    def compile(self, *arguments: Any, target: str | Target | None = None, **keywords: Any) -> Kernel:
        """The kernel for these arguments, compiled now; no device is needed. Eager kernels take tensors or ``tile.spec``."""
        kernel, _ = self.kernel(arguments, keywords, target)
        return kernel.compiled()

    def kernel(
        self, arguments: Sequence[Any], keywords: Mapping[str, Any], target: str | Target | None = None
    ) -> tuple[Kernel, list[Any]]:
        """The kernel for these arguments, not compiled yet, and the tensors among them."""
        if self.is_eager:
            return self._eager(arguments, keywords, target or self.target)
        return self._made(arguments, keywords, target or self.target), []

    # Factories.

    def _made(
        self, arguments: Sequence[Any], keywords: Mapping[str, Any], target: str | Target | None
    ) -> Kernel:
        key = _key((tuple(arguments), tuple(sorted(keywords.items())), str(target)))
        found = self._kernels.get(key) if key is not None else None
        if found is not None:
            return found
        self._bound(arguments, keywords)
        made = self.function(*arguments, **keywords)
        if isinstance(made, FunctionType):
            made = PrimFunc(made)
        if not isinstance(made, PrimFunc):
            raise KernelError(
                f"{self.function.__name__} returned {type(made).__name__}, not a function marked @T.prim_func",
                help="a factory ends with `return kernel`; an eager kernel uses T.Kernel in its own body",
            )
        name = self.function.__name__  # the inner function is called `kernel` in every factory
        program = replace(
            made.program, name=name
        )  # made now, so that mistakes are found before the first call
        outputs = outputs_of(program, self.out_idx)
        kernel = Kernel(
            Request(name, lambda: program, self._identity(made, arguments, keywords), outputs), target
        )
        if key is not None:
            self._kernels[key] = kernel
        return kernel

    def _identity(self, made: PrimFunc, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> str:
        try:
            return fingerprint(
                self.function, made.function, tuple(arguments), dict(keywords), text(made.program)
            )
        except Unknown:
            return ""

    # Eager kernels.

    def _eager(
        self, arguments: Sequence[Any], keywords: Mapping[str, Any], target: str | Target | None
    ) -> tuple[Kernel, list[Any]]:
        if self.out_idx is not None:
            raise KernelError("out_idx is for factories; an eager kernel returns its outputs")
        bound = self._bound(arguments, keywords)
        bound.apply_defaults()
        tensors = {n: v for n, v in bound.arguments.items() if is_tensor(v) or isinstance(v, TensorFacts)}
        static = {n: v for n, v in bound.arguments.items() if n not in tensors}
        facts = {n: _facts(n, v) for n, v in tensors.items()}
        key = _key((tuple(facts.items()), tuple(static.items()), str(target)))
        found = self._kernels.get(key) if key is not None else None
        if found is None:
            found = self._eager_kernel(facts, static, target)
            if key is not None:
                self._kernels[key] = found
        return found, list(tensors.values())

    def _eager_kernel(
        self, facts: Mapping[str, TensorFacts], static: Mapping[str, Any], target: str | Target | None
    ) -> Kernel:
        """The kernel for these shapes; shapes that differ in symbolic dimensions only share one."""
        program = build_eager(self.function, facts, static)
        shapes = tuple(
            (b.name, tuple(d if isinstance(d, int) else "?" for d in b.shape), b.dtype.name)
            for b in program.tensors
        )
        key = _key(("shared", shapes, tuple(static.items()), str(target)))
        if key is not None and key in self._kernels:
            return self._kernels[key]
        try:
            identity = fingerprint(self.function, shapes, dict(static), text(program))
        except Unknown:
            identity = ""
        kernel = Kernel(Request(self.function.__name__, lambda: program, identity, program.outputs), target)
        if key is not None:
            self._kernels[key] = kernel
        return kernel

    def _bound(self, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> inspect.BoundArguments:
        """Arguments by the names of parameters. Raises ``ArgumentError`` if they do not fit the function."""
        try:
            return self._signature.bind(*arguments, **keywords)
        except TypeError as error:
            name = self.function.__name__
            raise ArgumentError(f"{name}: {error}", help=f"it is {name}{self._signature}") from None

    @cached_property
    def _signature(self) -> inspect.Signature:
        return inspect.signature(self.function)

    def __repr__(self) -> str:
        return f"<tile.jit {self.function.__name__}>"


def compile(
    function: Any,
    out_idx: int | Sequence[int] | None = None,
    target: str | Target | None = None,
    **ignored: Any,
) -> Kernel:
    """Compile a function marked ``@T.prim_func``: ``tile.compile(kernel, out_idx=[-1], target="cpu")``.

    Raises:
        KernelError: it is no kernel, or an unknown option.
    """
    _known(ignored)
    kernel = function if isinstance(function, PrimFunc) else None
    if kernel is None:
        raise KernelError(f"{function!r} is not a function marked @T.prim_func")
    program = build(kernel)  # again: what it uses from around it may have changed
    try:
        identity = fingerprint(kernel.function, kernel.scope_values(), text(program))
    except Unknown:
        identity = ""
    return Kernel(Request(kernel.name, lambda: program, identity, outputs_of(program, out_idx)), target)


def spec(shape: Sequence[int], dtype_: Any = "float32") -> TensorFacts:
    """A stand-in for a tensor when an eager kernel is compiled without one: ``k.compile(tile.spec((64, 64), "float16"))``."""
    return TensorFacts(tuple(shape), dtype(dtype_))


def outputs_of(program: TileProgram, out_idx: int | Sequence[int] | None) -> tuple[int, ...]:
    """Numbers of the parameters that ``out_idx`` names. Raises ``KernelError`` if one is not there or is no tensor."""
    if out_idx is None:
        return program.outputs
    return tuple(_output(program, n) for n in ([out_idx] if isinstance(out_idx, int) else out_idx))


def _output(program: TileProgram, n: object) -> int:
    count = len(program.params)
    if not isinstance(n, int) or not -count <= n < count or program.params[n].tensor is None:
        raise KernelError(
            f"out_idx {n!r} names no tensor parameter of {program.name}, which has {count}", program.span
        )
    return n % count


def _facts(name: str, value: Any) -> TensorFacts:
    if isinstance(value, TensorFacts):
        return value
    found = view(value, name)
    return TensorFacts(found.shape, dtype(found.dtype))


def _key(value: Any) -> Any:
    """``value`` if it can be a dictionary's key, else None. 1, 1.0 and True are told apart."""
    try:
        hash(value)
    except TypeError:
        return None
    return None if _mutable(value) else (value, repr(value))


def _mutable(value: Any) -> bool:
    """Whether a value is, or holds, an object that may change and still be equal to itself."""
    if is_tuple(value):
        return any(_mutable(v) for v in value)
    return (
        type(value).__hash__ is object.__hash__
        and not isinstance(value, (type, ModuleType))
        and not callable(value)
    )


def _uses_language(function: FunctionType) -> bool:
    """Whether the function's own statements, not those of functions inside it, are statements of a kernel."""
    scope = inspect.getclosurevars(function)
    known = {**scope.globals, **scope.nonlocals}
    marks = [getattr(language, name) for name in EAGER_MARKS]
    stack: list[ast.AST] = list(parsed(function.__code__).node.body)
    while stack:
        at = stack.pop()
        if isinstance(at, (ast.FunctionDef, ast.Lambda, ast.ClassDef)):
            continue
        if isinstance(at, ast.Call) and _meant(at.func, known) in marks:
            return True
        stack.extend(ast.iter_child_nodes(at))
    return False


def _meant(name: ast.expr, known: Mapping[str, Any]) -> Any:
    """The value of a name, or of a module's member such as ``T.copy``; None if it is something else."""
    match name:
        case ast.Name(id=word):
            return known.get(word)
        case ast.Attribute(value=inner, attr=word):
            module = _meant(inner, known)
            return getattr(module, word, None) if isinstance(module, ModuleType) else None
        case _:
            return None
