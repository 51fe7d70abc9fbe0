"""The interpreter as a backend, so that it takes the same road as every other one."""

from __future__ import annotations

import ctypes
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from ..backend import ApiVersion, Artifact, Backend, LaunchSpec, Source
from ..errors import KernelError
from ..hardware import Device, Engine, MemorySpace, Target, TargetInfo, TestedDevice
from ..inference.plan import TilePlan
from ..program.text import text
from ..signature import launch_spec

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..program import TileProgram

TYPES = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 int1 int2 int4 uint1 uint2 uint4 float16 bfloat16 float32 tfloat32 "
    "float64 float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz "
    "float8_e8m0fnu float6_e2m3fn float6_e3m2fn float4_e2m1fn float4_e2m1_unpacked"
)

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
    dtypes=frozenset(TYPES.split()),
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
            values.append(array_at(int(value), shape, strides, p.dtype))
        try:
            run(self.program, values)
        except MemoryError as error:
            raise KernelError(
                f"the tiles of {self.program.name} do not fit into memory: {error}", self.program.span
            ) from error


def array_at(
    pointer: int, shape: tuple[int, ...], strides: tuple[int, ...] | None, type: str
) -> NDArray[Any]:
    """A numpy array over memory at an address; ``strides`` count elements, None: contiguous."""
    import numpy as np

    from ..dtypes import dtype

    kind = dtype(type).as_numpy()
    if 0 in shape or not pointer:
        return np.zeros(shape, dtype=kind)
    steps = strides if strides is not None else _row_major(shape)
    size = 1 + sum((n - 1) * s for n, s in zip(shape, steps, strict=True))
    raw = (ctypes.c_uint8 * (size * kind.itemsize)).from_address(pointer)
    return np.ndarray(shape, kind, buffer=raw, strides=tuple(s * kind.itemsize for s in steps))


def _row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    out, step = [], 1
    for extent in reversed(shape):
        out.append(step)
        step *= extent
    return tuple(reversed(out))
