"""Plans to CUDA C++ text without any include: one ``__global__`` function for each launch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tile_core.backend import Source
from tile_core.expr import Expr, Var, text
from tile_core.hardware import TargetInfo
from tile_core.inference.overlap import overlapped
from tile_core.inference.plan import TilePlan
from tile_core.lowering.entry import Entry, entry_names
from tile_core.lowering.printer import Printer
from tile_core.lowering.simt.boxes import BoxMap
from tile_core.lowering.simt.lower import Lowered, lower_for
from tile_core.program import Launch, TileProgram
from tile_core.signature import launch_params, launch_spec, workspaces
from tile_core.verification.heard import Emitted

from ..compiler.options import Options
from ..prelude.table import complete
from .base import BASE
from .dialect import CUDA
from .instructions import instructions
from .tensor_maps import tensor_maps, when


class CudaCodegen:
    """Emits CUDA C++. Pure and deterministic."""

    def __init__(self, info: TargetInfo) -> None:
        self.info = info

    def emit(self, plan: TilePlan) -> Source:
        """The source of all launches.

        Raises:
            Unsupported: a type, function or amount of shared memory that the architecture does not have, with the span.
        """
        fast = lower_for(plan, instructions(self.info))
        text = _Text(self.info, plan.program)
        general: Lowered | None = None
        for n, (launch, name) in enumerate(
            zip(fast.program.launches, entry_names(plan.program), strict=True)
        ):
            conditions = fast.conditions[n]
            text.add(fast.program, launch, name, fast.boxes[n], conditions, resident=fast.resident[n])
            if fast.sharing[n] > 1:
                text.extra["cluster"][name] = (fast.sharing[n], 1, 1)
            if conditions:
                # tensors that no box fits: the threads copy
                general = general or lower_for(
                    overlapped(plan, boxes=False), instructions(self.info, boxes=False)
                )
                other = general.program.launches[n]
                text.add(
                    general.program,
                    other,
                    f"{name}_general",
                    {},
                    conditions,
                    otherwise=True,
                    resident=general.resident[n],
                )
        return text.source()

    def emitted(self, plan: TilePlan) -> Sequence[Emitted]:
        """The launches with tokens, for verification."""
        return lower_for(plan, instructions(self.info)).emitted


class _Text:
    """The text of a source and its launch specification while they grow."""

    def __init__(self, info: TargetInfo, program: TileProgram) -> None:
        self.info, self.program = info, program
        self.parts: list[str] = []
        self.launches: dict[str, Launch] = {}
        self.maps: dict[str, dict[str, Any]] = {}
        self.extra: dict[str, dict[str, Any]] = {
            "shared": {},
            "parameters": {},
            "when": {},
            "cluster": {},
            "pdl": {},
        }
        self.pdl = Options.of(dict(info.target.options)).pdl

    def add(
        self,
        program: TileProgram,
        launch: Launch,
        name: str,
        boxes: Mapping[BoxMap, Var],
        conditions: Sequence[Expr],
        otherwise: bool = False,
        resident: int = 0,
    ) -> None:
        """One entry point. ``conditions``: it is launched only where all hold, or with ``otherwise`` where one does not.

        ``resident``: how many of its blocks a core should hold, 0 if nobody minds.
        """
        held = {b: f"workspace{k}" for k, b in enumerate(workspaces(self.program))}
        rows = tensor_maps(boxes, f"{name}_", held)
        entry = _Entry(self.info, program, launch, name, boxes, resident)
        self.parts.append("\n".join(entry.lines()))
        self.launches[name] = launch
        self.maps |= {row["name"]: row for row in rows}
        self.extra["shared"][name] = entry.shared
        own = [p.name for p in launch_params(self.program)]
        self.extra["parameters"][name] = (*own, *(row["name"] for row in rows), *held.values())
        if self.pdl:
            self.extra["pdl"][name] = True
        if conditions:
            self.extra["when"][name] = when(conditions, otherwise)

    def source(self) -> Source:
        held = tuple(
            (tuple(text(d) if isinstance(d, Expr) else d for d in b.shape), b.dtype.bytes)
            for b in workspaces(self.program)
        )
        extra: dict[str, Any] = {key: value for key, value in self.extra.items() if value}
        if self.maps:
            extra["tensor_maps"] = tuple(self.maps.values())
        spec = launch_spec(
            self.program, list(self.launches), {**extra, "workspaces": held}, list(self.launches.values())
        )
        return Source(complete(BASE + "\n" + "\n\n".join(self.parts) + "\n"), "cuda", ".cu", spec)


class _Entry:
    """One ``__global__`` function."""

    def __init__(
        self,
        info: TargetInfo,
        program: TileProgram,
        launch: Launch,
        name: str,
        boxes: Mapping[BoxMap, Var],
        resident: int,
    ) -> None:
        self.name, self.boxes, self.resident = name, boxes, resident
        self.printer = Printer(CUDA)
        self.entry = Entry(info, program, launch, self.printer)

    @property
    def shared(self) -> int:
        return self.entry.shared

    def parameters(self) -> Iterator[tuple[str, str]]:
        yield from self.entry.arguments()
        yield from self.entry.dimensions()
        for v in self.boxes.values():
            yield "const __grid_constant__ TensorMap", f"{self.printer.name(v)}_map"
        yield from self.entry.workspaces()

    def lines(self) -> Iterator[str]:
        given = ", ".join(f"{type} {name}" for type, name in self.parameters())
        launch = self.entry.launch
        bounds = f"{launch.thread_count}{f', {self.resident}' if self.resident else ''}"
        yield f'extern "C" __global__ void __launch_bounds__({bounds}) {self.name}({given}) {{'
        yield "  alignas(1024) extern __shared__ unsigned char arena[];"
        for v in self.boxes.values():
            yield f"  const TensorMap* const {self.printer.name(v)} = &{self.printer.name(v)}_map;"
        for line in (*self.numbers(launch), *self.entry.tiles("arena"), *self.entry.views()):
            yield f"  {line}"
        yield from self.printer.block(launch.body, 1)
        yield "}"

    def numbers(self, launch: Launch) -> Iterator[str]:
        """Block numbers and this thread's number. The first block number changes fastest, as blockIdx.x does."""
        for v, axis in zip(launch.vars, "xyz", strict=False):
            yield f"const int {self.printer.name(v)} = blockIdx.{axis};"
        yield f"const int {self.printer.name(launch.thread_vars[0])} = threadIdx.x;"
