"""One call of a compiled kernel: the arguments are looked at, outputs allocated, all is bound and launched."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..backend import DirectKernel, LaunchSpec, LoadedKernel, TensorKernel
from ..errors import ArgumentError, did_you_mean
from ..select import TensorDevice
from .arguments import TensorView, allocator, is_tensor, view
from .binding import bind, evaluate, solve

# A way around Python for warm calls: (arguments, stream) -> True, or the outputs in a tuple of one; false: take the long way.
Direct = Callable[[tuple[Any, ...], "int | None"], Any]


@dataclass(frozen=True)
class Call:
    """The arguments of a call, and those of them that are tensors as views."""

    arguments: tuple[Any, ...]
    views: tuple[TensorView | None, ...]

    @staticmethod
    def of(arguments: tuple[Any, ...]) -> Call:
        """Raises ``ArgumentError`` if an argument is a tensor that tile cannot take."""
        views = (view(a, f"argument {n}") if is_tensor(a) else None for n, a in enumerate(arguments))
        return Call(arguments, tuple(views))

    @property
    def where(self) -> TensorDevice | None:
        """Where the tensors live."""
        return next((v.device for v in self.views if v is not None), None)

    @property
    def index(self) -> int:
        where = self.where
        return where.index if where else 0

    def run(
        self, name: str, launch: LaunchSpec, loaded: Callable[[], LoadedKernel], stream: int | None
    ) -> Any:
        """Launch, and give the outputs that were allocated: alone or in a tuple.

        Raises:
            ArgumentError: an argument does not fit; the message names it.
        """
        values, views, finish = self._with_outputs(name, launch)
        bound = bind(launch, values, views)
        if not bound.empty:
            kernel = loaded()
            given = objects(values, bound.values) if isinstance(kernel, TensorKernel) else bound.values
            kernel(given, bound.grids, stream)
        outputs = tuple(finish(values[n]) for n in launch.outputs)
        return None if not outputs else outputs[0] if len(outputs) == 1 else outputs

    def _with_outputs(
        self, name: str, launch: LaunchSpec
    ) -> tuple[list[Any], list[TensorView | None], Callable[[Any], Any]]:
        """All values and views in the order of the signature, outputs allocated; and what gives an output to the caller."""
        arguments, views = self.arguments, self.views
        params = [p for p in launch.params if p.kind != "dim"]
        inputs = [p for n, p in enumerate(params) if n not in launch.outputs]
        if len(arguments) != len(inputs):
            names = ", ".join(p.name for p in inputs)
            raise ArgumentError(
                f"{name} takes {len(inputs)} arguments ({names}), {len(arguments)} are given",
                help="outputs named by out_idx are allocated and returned" if launch.outputs else "",
            )
        if not launch.outputs:
            return list(arguments), list(views), _same
        dims = solve(
            [(p, v.shape) for p, v in zip(inputs, views, strict=True) if v is not None and p.kind == "tensor"]
        )
        like = next((a for a, v in zip(arguments, views, strict=True) if v is not None), None)
        allocate, finish = allocator(like)
        rest = iter(zip(arguments, views, strict=True))
        full: list[tuple[Any, TensorView | None]] = []
        for n, p in enumerate(params):
            if n not in launch.outputs:
                full.append(next(rest))
                continue
            try:
                made = allocate([evaluate(d, dims) for d in p.shape], p.dtype)
            except NameError as error:
                raise ArgumentError(
                    f"the shape of the output {p.name} follows from no input: {error}"
                ) from error
            full.append((made, view(made, p.name)))
        return [value for value, _ in full], [v for _, v in full], finish


def objects(arguments: Sequence[Any], values: Sequence[int | float]) -> tuple[Any, ...]:
    """``values`` of a call with the tensors themselves in place of their addresses."""
    own = (a if is_tensor(a) else v for a, v in zip(arguments, values, strict=False))
    return (*own, *values[len(arguments) :])


def ordered(
    kernel: str, names: Sequence[str], arguments: Sequence[Any], named: Mapping[str, Any]
) -> tuple[Any, ...]:
    """All arguments in the order of the parameters ``names``. Raises ``ArgumentError`` for a name that is wrong or missing."""
    given = dict(zip(names, arguments, strict=False))
    for name in named:
        if name not in names:
            raise ArgumentError(f"{kernel} has no argument {name!r}", help=did_you_mean(name, names))
        if name in given:
            raise ArgumentError(f"the argument {name} of {kernel} is given twice")
    given |= named
    if missing := [n for n in names if n not in given]:
        raise ArgumentError(f"the argument {missing[0]} of {kernel} is missing")
    return (*(given[n] for n in names), *arguments[len(names) :])


def direct(loaded: LoadedKernel, launch: LaunchSpec) -> Direct | None:
    """The way around Python for further calls, if the loaded kernel checks arguments by itself."""
    call = getattr(loaded, "call", None)
    if call is None or not launch.outputs:
        return call
    return _Allocating(loaded, call, launch)  # type: ignore[arg-type]


class _Allocating:
    """Allocates the outputs and calls."""

    def __init__(self, loaded: DirectKernel, call: Direct, launch: LaunchSpec) -> None:
        self.call = call
        self.shapes = loaded.shapes
        self.outputs = tuple(sorted(launch.outputs))
        self.dtypes = [launch.params[n].dtype for n in self.outputs]
        self.given = tuple(launch.outputs)

    def __call__(self, arguments: tuple[Any, ...], stream: int | None) -> tuple[Any] | None:
        shapes = self.shapes(arguments, self.outputs)
        like = next((a for a in arguments if is_tensor(a)), None)
        if shapes is None or like is None:
            return None
        allocate, finish = allocator(like)
        full = list(arguments)
        for n, shape, dtype in zip(self.outputs, shapes, self.dtypes, strict=True):
            full.insert(n, allocate(shape, dtype))
        if not self.call(tuple(full), stream):
            return None
        made = tuple(finish(full[n]) for n in self.given)
        return (made[0] if len(made) == 1 else made,)


def _same(value: Any) -> Any:
    return value
