"""What a user holds: a kernel that can be called, and looked into."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .. import settings
from ..backend import Artifact, Backend, Disassembles, LaunchSpec
from ..errors import ArgumentError, KernelError, Unsupported, did_you_mean
from ..graph import Graph
from ..hardware import Target, TargetInfo
from ..inference.plan import TilePlan
from ..program import TileProgram
from ..registry import registry
from ..select import TensorDevice, choose
from .arguments import TensorView, allocator, is_tensor, view
from .binding import bind, evaluate, solve
from .failures import folded
from .targeted import Request, TargetKernel


class Kernel:
    """A kernel: call it with tensors. It is compiled when first needed, for each target that it is used on.

    The target is that of ``target``, or is chosen at each call: ``with tile.target(...)``, ``TILE_TARGET``, the tensors' device.
    """

    def __init__(self, request: Request, target: str | Target | None = None) -> None:
        self.request = request
        self.wanted = target
        self._targets: dict[Target, TargetKernel] = {}
        self._chosen: dict[Any, TargetKernel] = {}
        self._last: TargetKernel | None = None

    @folded
    def __call__(self, /, *arguments: Any, stream: int | None = None, **named: Any) -> Any:
        """Run the kernel; gives the outputs that the runtime allocates, alone or in a tuple.

        Arguments are given in order, or by the names of the kernel's parameters.

        Raises:
            ArgumentError: an argument does not fit; the message names it.
            NoDevice: there is no device of the target.
        """
        if named:
            arguments = self._ordered(arguments, named)
        views = [view(a, f"argument {n}") if is_tensor(a) else None for n, a in enumerate(arguments)]
        where = next((v.device for v in views if v is not None), None)
        kernel = self.on(where)
        launch = kernel.entry.source.launch
        values, views, finish = self._with_outputs(launch, arguments, views)
        bound = bind(launch, values, views)
        if not bound.empty:
            kernel.loaded(where.index if where else 0)(bound.values, bound.grids, stream)
        outputs = tuple(finish(values[n]) for n in launch.outputs)
        return None if not outputs else outputs[0] if len(outputs) == 1 else outputs

    def _ordered(self, arguments: Sequence[Any], named: Mapping[str, Any]) -> tuple[Any, ...]:
        """All arguments in the order of the parameters."""
        program = self.program
        names = [p.name for n, p in enumerate(program.params) if n not in program.outputs]
        given = dict(zip(names, arguments, strict=False))
        for name in named:
            if name not in names:
                raise ArgumentError(f"{self.name} has no argument {name!r}", help=did_you_mean(name, names))
            if name in given:
                raise ArgumentError(f"the argument {name} of {self.name} is given twice")
        given |= named
        if missing := [n for n in names if n not in given]:
            raise ArgumentError(f"the argument {missing[0]} of {self.name} is missing")
        return (*(given[n] for n in names), *arguments[len(names) :])

    def __deepcopy__(self, memo: Any) -> Kernel:
        return self

    def __reduce__(self) -> Any:
        raise KernelError(
            f"the kernel {self.name} cannot be pickled",
            why="it is made from Python source, and holds code that is loaded into this process",
            help="call the function that makes it in the other process; compiled code is found in the cache",
        )

    def on(self, where: TensorDevice | None = None) -> TargetKernel:
        """The kernel for the target of a call with tensors that live ``where``.

        Raises:
            ArgumentError: the target's devices cannot reach such tensors.
        """
        wanted, interpret = settings.wanted_target()
        key = (None if where is None else (where.torch, where.dlpack), wanted, interpret)
        found = self._chosen.get(key)
        if found is None:
            target = choose("interpreter" if self.wanted is None and interpret else self.wanted, where)
            _reachable(registry().get(target.backend), where)
            found = self._chosen[key] = self._targets.setdefault(target, TargetKernel(self.request, target))
        self._last = found
        return found

    def _with_outputs(
        self, launch: LaunchSpec, arguments: Sequence[Any], views: Sequence[TensorView | None]
    ) -> tuple[list[Any], list[TensorView | None], Callable[[Any], Any]]:
        """All values and views in the order of the signature, outputs allocated; and what gives an output to the caller."""
        params = [p for p in launch.params if p.kind != "dim"]
        inputs = [p for n, p in enumerate(params) if n not in launch.outputs]
        if len(arguments) != len(inputs):
            names = ", ".join(p.name for p in inputs)
            raise ArgumentError(
                f"{self.name} takes {len(inputs)} arguments ({names}), {len(arguments)} are given",
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

    # Looking inside: at the kernel that was used last, else at that for the target of a call without tensors.

    @property
    def _now(self) -> TargetKernel:
        return self._last or self.on(None)

    @property
    def name(self) -> str:
        return self.request.name

    @property
    def target(self) -> Target:
        """The target that it was last used on, or would be."""
        return self._now.target

    @property
    def backend(self) -> Backend:
        return self._now.backend

    @property
    def info(self) -> TargetInfo:
        """Facts of the target."""
        return self._now.info

    @property
    def program(self) -> TileProgram:
        """The tile program as it was written."""
        return self.request.program

    @property
    def plan(self) -> TilePlan:
        """What inference decided: grid, layouts, instructions, moves."""
        return self._now.plan

    @property
    def graph(self) -> Graph:
        """The fused tile-level dataflow graph."""
        return self.plan.graph

    @property
    def ir(self) -> str:
        """The lowered program from which the source is printed. Raises ``Unsupported`` if the backend has none."""
        from .pipeline import legalized, lowered_text

        return lowered_text(legalized(self.plan, self.backend), self.backend)

    @property
    def source(self) -> str:
        """The generated source."""
        return self._now.entry.source.text

    @property
    def source_file(self) -> Path:
        """A file that holds the generated source, beside the cache."""
        return self._now.write_source()

    @property
    def artifact(self) -> Artifact:
        """What the launcher loads."""
        return self._now.entry.artifact

    @property
    def resources(self) -> Mapping[str, int]:
        """Figures of the compiled kernel, such as bytes of scratch or registers."""
        return self.artifact.resources

    @property
    def launch(self) -> LaunchSpec:
        """How it is called."""
        return self._now.entry.source.launch

    @property
    def times(self) -> Mapping[str, float]:
        """Milliseconds that each stage of the compilation took; empty if it came from the cache."""
        return self._now.times

    def compiled(self) -> Kernel:
        """The same kernel, compiled now for the target of a call without tensors."""
        _ = self.on(None).entry
        return self

    def disassemble(self) -> str:
        """Machine code as text. Raises ``Unsupported`` if the backend has no disassembler."""
        compiler = self.backend.compiler(self.info)
        if not isinstance(compiler, Disassembles):
            raise Unsupported(f"{self.backend.name} cannot disassemble")
        return compiler.disassemble(self._now.entry.source, self.artifact)

    def __repr__(self) -> str:
        return (
            f"<kernel {self.name}: {self._last.target if self._last else self.wanted or 'not yet compiled'}>"
        )


def _reachable(backend: Backend, where: TensorDevice | None) -> None:
    """Raise ``ArgumentError`` if the backend cannot reach tensors that live ``where``."""
    if where is None or where.torch in backend.torch_devices or where.dlpack in backend.dlpack_devices:
        return
    if backend.torch_devices or backend.dlpack_devices:
        own = ", ".join(dict.fromkeys(f"{name!r}" for name, _ in backend.torch_devices))
        raise ArgumentError(
            f"the tensors are on {where}, a kernel for {backend.name} cannot reach them",
            help=f"move them to device {own}, or choose another target",
        )


def _same(value: Any) -> Any:
    return value
