"""Plans to CUDA C++ text without any include: one ``__global__`` function for each launch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tile_core.backend import Source
from tile_core.errors import InternalError, Unsupported
from tile_core.expr import Buffer, Expr, Space, Var, text
from tile_core.hardware import TargetInfo
from tile_core.inference.overlap import overlapped
from tile_core.inference.plan import TilePlan
from tile_core.lowering.printer import Printer
from tile_core.lowering.simt.arena import size_of
from tile_core.lowering.simt.boxes import BoxMap
from tile_core.lowering.simt.lower import Lowered, lower_for
from tile_core.program import Alloc, Launch, Param, TileProgram
from tile_core.program.verify import used_dimensions
from tile_core.program.visit import buffers
from tile_core.signature import launch_params, launch_spec, workspaces

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
        for n, launch in enumerate(fast.program.launches):
            conditions = fast.conditions[n]
            name = f"{plan.program.name}_{n}"
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
        rows = tensor_maps(boxes, f"{name}_")
        entry = _Entry(self.info, program, launch, name, boxes, resident)
        self.parts.append("\n".join(entry.lines()))
        self.launches[name] = launch
        self.maps |= {row["name"]: row for row in rows}
        self.extra["shared"][name] = entry.shared
        own = [p.name for p in launch_params(self.program)]
        held = [f"workspace{k}" for k in range(len(workspaces(self.program)))]
        self.extra["parameters"][name] = (*own, *(row["name"] for row in rows), *held)
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
        self.info, self.program, self.launch, self.name = info, program, launch, name
        self.boxes, self.resident = boxes, resident
        self.printer = Printer(CUDA)
        self.shared = 0

    def lines(self) -> Iterator[str]:
        arguments = ", ".join(self.argument(p) for p in self.program.params)
        dims = "".join(
            f", {self.printer.type(v.dtype)} {self.printer.name(v)}" for v in used_dimensions(self.program)
        )
        dims += "".join(
            f", const __grid_constant__ TensorMap {self.printer.name(v)}_map" for v in self.boxes.values()
        )
        dims += "".join(
            f", {self.printer.type(b.dtype)}* {self.printer.name(b)}" for b in workspaces(self.program)
        )
        bounds = f"{self.launch.thread_count}{f', {self.resident}' if self.resident else ''}"
        yield f'extern "C" __global__ void __launch_bounds__({bounds}) {self.name}({arguments}{dims}) {{'
        yield "  alignas(1024) extern __shared__ unsigned char arena[];"
        for v in self.boxes.values():
            yield f"  const TensorMap* const {self.printer.name(v)} = &{self.printer.name(v)}_map;"
        yield from self.numbers()
        yield from self.tiles()
        yield from self.views()
        yield from self.printer.block(self.launch.body, 1)
        yield "}"

    def argument(self, p: Param) -> str:
        value = p.value
        if isinstance(value, Buffer):
            return f"{self.printer.type(value.dtype)}* {self.printer.name(value)}"
        if value.dtype.kind == "handle":
            return f"void* {self.printer.name(value)}"
        return f"{self.printer.type(value.dtype)} {self.printer.name(value)}"

    def numbers(self) -> Iterator[str]:
        """Block numbers and this thread's number. The first block number changes fastest, as blockIdx.x does."""
        for v, axis in zip(self.launch.vars, "xyz", strict=False):
            yield f"  const int {self.printer.name(v)} = blockIdx.{axis};"
        yield f"  const int {self.printer.name(self.launch.thread_vars[0])} = threadIdx.x;"

    def tiles(self) -> Iterator[str]:
        """Shared tiles in the arena, where the lowering has put them."""
        for s in self.launch.body:
            if not isinstance(s, Alloc) or s.buffer.space is not Space.SHARED:
                continue
            if s.offset is None:
                raise InternalError(f"{s.buffer.name} has no place in shared memory")
            type = self.printer.type(s.buffer.dtype)
            yield f"  {type}* const {self.printer.name(s.buffer)} = reinterpret_cast<{type}*>(arena + {s.offset});"
            self.shared = max(self.shared, s.offset + size_of(s.buffer))
        space = self.info.space("shared")
        if space is not None and self.shared > space.capacity:
            raise Unsupported(
                f"the block needs {self.shared} bytes of shared memory, {self.info.target} has {space.capacity}",
                self.launch.span,
                help="use smaller tiles, or fewer of them or of the stages of a loop",
            )

    def views(self) -> Iterator[str]:
        """Buffers that read the memory of another one with another type."""
        for b in buffers(self.launch.body):
            owner: Buffer | Var | None = b.base or b.source
            if owner is not None and b.space in (Space.GLOBAL, Space.SHARED):
                type = self.printer.type(b.dtype)
                yield f"  {type}* const {self.printer.name(b)} = reinterpret_cast<{type}*>({self.printer.name(owner)});"
