"""The interpreter as a backend, so that it takes the same road as every other one."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from ..backend import ApiVersion, Artifact, Backend, LaunchSpec, Source
from ..dtypes import ALL
from ..errors import KernelError
from ..hardware import Device, Engine, MemorySpace, Target, TargetInfo, TestedDevice
from ..inference.plan import TilePlan
from ..program.text import text
from ..signature import launch_spec

if TYPE_CHECKING:
    from ..program import TileProgram

INFO = TargetInfo(
    target=Target("interpreter", "numpy"),
    spaces=(
        MemorySpace("global", 1 << 40, 1, "grid"),
        MemorySpace("shared", 1 << 40, 1, "block"),
        MemorySpace("register", 1 << 40, 1, "block"),
    ),
    engines=(Engine("python", "synchronous", "block"),),
    tokens=(),
    subgroup=1,
    max_threads=1,
    dtypes=frozenset(ALL) - {"handle"},
    atoms=(),
    peaks={"float32": 1e9, "global": 1e9},
    cores=1,
    clock=1e9,
    sources=("an interpreter has no limits; the peaks only order candidates",),
)


class InterpreterBackend(Backend):
    """Runs tile programs with numpy and checks every access. Only on request: ``target="interpreter"`` or ``TILE_INTERPRET=1``."""

    name: ClassVar[str] = "interpreter"
    api: ClassVar[ApiVersion] = ApiVersion(1, 0)
    torch_devices = (("cpu", False), ("cpu", True))
    dlpack_devices = (1,)  # kDLCPU of dlpack.h
    preference = -1  # never chosen unless it is named

    def targets(self) -> Sequence[TargetInfo]:
        return (INFO,)

    def tested_devices(self) -> Sequence[TestedDevice]:
        return ()

    def devices(self) -> Sequence[Device]:
        return (Device(INFO.target, 0, "numpy interpreter", torch="cpu"),)

    def lowering(self, info: TargetInfo) -> Unchanged:
        return Unchanged()

    def codegen(self, info: TargetInfo) -> ProgramText:
        return ProgramText()

    def compiler(self, info: TargetInfo) -> ProgramBytes:
        return ProgramBytes()

    def launcher(self, device: Device) -> InterpreterLauncher:
        return InterpreterLauncher()


class Unchanged:
    """The interpreter runs every plan as it is."""

    def legalize(self, plan: TilePlan) -> TilePlan:
        return plan

    def passes(self) -> Sequence[Any]:
        return ()


class ProgramText:
    """The tile program is its own source."""

    def emit(self, plan: TilePlan) -> Source:
        entries = [f"{plan.program.name}_{n}" for n in range(len(plan.program.launches))]
        spec = launch_spec(plan.program, entries, {"program": pickle.dumps(plan.program).hex()})
        return Source(text(plan.program), "tile", ".tile", spec)


class ProgramBytes:
    """The pickled program is what is run."""

    def compile(self, source: Source, options: Mapping[str, Any]) -> Artifact:
        return Artifact("program", bytes.fromhex(source.launch.extra["program"]))

    def fingerprint(self) -> str:
        return "interpreter"


class InterpreterLauncher:
    """Runs programs in the calling thread."""

    def load(self, artifact: Artifact, launch: LaunchSpec) -> LoadedProgram:
        return LoadedProgram(pickle.loads(artifact.data), launch)

    def synchronize(self) -> None:
        return None

    def current_stream(self) -> int | None:
        return None


@dataclass(frozen=True)
class LoadedProgram:
    """A program with the memory of its arguments made into numpy arrays at each call."""

    program: TileProgram
    launch: LaunchSpec

    def __call__(
        self, arguments: Sequence[int | float], grids: Sequence[tuple[int, ...]], stream: int | None = None
    ) -> None:
        from ..runtime.binding import evaluate
        from .machine import run
        from .memory import array_at

        params = self.launch.params
        dims = {p.name: int(v) for p, v in zip(params, arguments, strict=True) if p.kind == "dim"}
        values: list[Any] = []
        for p, value in zip(params, arguments, strict=True):
            if p.kind == "dim":
                continue
            if p.kind != "tensor":
                values.append(value)
                continue
            shape = tuple(evaluate(d, dims) for d in p.shape)
            strides = tuple(evaluate(s, dims) for s in p.strides) if p.strides else None
            values.append(array_at(int(value), shape, strides, ALL[p.dtype]))
        try:
            run(self.program, values)
        except MemoryError as error:
            raise KernelError(
                f"the tiles of {self.program.name} do not fit into memory: {error}", self.program.span
            ) from error
