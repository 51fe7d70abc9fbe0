"""What a user holds: a kernel that can be called, and looked into."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .. import settings
from ..backend import Artifact, Backend, Disassembles, Finding, LaunchSpec, LoadedKernel
from ..errors import KernelError, Unsupported
from ..graph import Graph
from ..hardware import Target, TargetInfo
from ..inference.plan import TilePlan
from ..program import TileProgram
from ..registry import registry
from ..select import TensorDevice, choose
from ..settings import INTERPRET, TARGET, scope_now, variable_now
from .calling import Call, Direct, ordered
from .failures import folded
from .reach import reachable
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
        # by state of the settings: loaded kernels that check a call's arguments by themselves
        self._direct: dict[Any, tuple[tuple[TargetKernel, Direct], ...]] = {}
        # the one of them that was used last, and the settings then
        self._again: tuple[Direct | None, Any, Any, Any] = (None, None, None, None)

    def __call__(self, /, *arguments: Any, stream: int | None = None, **named: Any) -> Any:
        """Run the kernel; gives the outputs that the runtime allocates, alone or in a tuple.

        Arguments are given in order, or by the names of the kernel's parameters.

        Raises:
            ArgumentError: an argument does not fit; the message names it.
            NoDevice: there is no device of the target.
        """
        again, scope, target, interpret = self._again
        if (
            again is not None
            and not named
            and scope_now() is scope
            and variable_now(TARGET) is target
            and variable_now(INTERPRET) is interpret
            and (found := again(arguments, stream))
        ):
            return None if found is True else found[0]
        state = settings.wanted_state() if self.wanted is None else None
        for kernel, launched in () if named else self._direct.get(state, ()):
            if found := launched(arguments, stream):
                self._last = kernel
                self._again = (launched, scope_now(), variable_now(TARGET), variable_now(INTERPRET))
                return None if found is True else found[0]
        return self._call(arguments, stream, state, named)

    @folded
    def _call(
        self, arguments: tuple[Any, ...], stream: int | None, state: Any, named: Mapping[str, Any]
    ) -> Any:
        if named:
            program = self.program
            names = [p.name for n, p in enumerate(program.params) if n not in program.outputs]
            arguments = ordered(self.name, names, arguments, named)
        call = Call.of(arguments)
        kernel = self.on(call.where)
        launch = kernel.entry.source.launch

        def loaded() -> LoadedKernel:
            found, further = kernel.loaded(call.index), kernel.direct(call.index)
            known = self._direct.get(state, ())
            if further is not None and (kernel, further) not in known:
                self._direct[state] = (*known, (kernel, further))
            return found

        return call.run(self.name, launch, loaded, stream)

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
            reachable(registry().get(target.backend), where)
            found = self._chosen[key] = self.for_target(target)
        self._last = found
        return found

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
        """The generated source. Nothing is compiled for it."""
        return self._now.source.text

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
        return self._now.source.launch

    @property
    def times(self) -> Mapping[str, float]:
        """Milliseconds that each stage of the compilation took; empty if it came from the cache."""
        return self._now.times

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What the toolkit did that costs speed."""
        return self.artifact.findings

    def export(self, folder: str | Path) -> Path:
        """Write a bundle, which ``tile.load`` runs without a compiler, for the target of a call without tensors.

        Gives the folder.
        """
        from .bundle import export

        return export(self, Path(folder))

    def export_web(self, folder: str | Path) -> Path:
        """Write a web page that runs the kernel in a browser, with a small module to call it from other pages.

        It is compiled for the kernel's own target if that runs in browsers, else for the one that every browser with a GPU has.
        Gives the folder. Raises ``Unsupported``: no backend here writes pages.
        """
        from .page import export_web

        return export_web(self, Path(folder))

    def for_target(self, target: Target) -> TargetKernel:
        """The kernel for one target, whatever a call would choose."""
        return self._targets.setdefault(target, TargetKernel(self.request, target))

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
