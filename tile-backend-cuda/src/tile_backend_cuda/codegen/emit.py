"""Plans to CUDA C++ text without any include: one ``__global__`` function for each launch."""

from __future__ import annotations

from collections.abc import Iterator

from tile_core.backend import Source
from tile_core.errors import InternalError, Unsupported
from tile_core.expr import Buffer, Expr, Space, Var, text
from tile_core.hardware import TargetInfo
from tile_core.inference.plan import TilePlan
from tile_core.lowering.printer import Printer
from tile_core.lowering.simt.arena import size_of
from tile_core.lowering.simt.lower import lower
from tile_core.program import Alloc, Launch, Param, TileProgram
from tile_core.program.verify import used_dimensions
from tile_core.program.visit import buffers
from tile_core.signature import launch_spec, workspaces

from ..prelude.table import complete
from .base import BASE
from .dialect import CUDA
from .instructions import instructions


class CudaCodegen:
    """Emits CUDA C++. Pure and deterministic."""

    def __init__(self, info: TargetInfo) -> None:
        self.info = info

    def emit(self, plan: TilePlan) -> Source:
        """The source of all launches.

        Raises:
            Unsupported: a type, function or amount of shared memory that the architecture does not have, with the span.
        """
        program = lower(plan, instructions(self.info))
        names: list[str] = []
        shared: dict[str, int] = {}
        parts: list[str] = []
        for n, launch in enumerate(program.launches):
            entry = _Entry(self.info, program, launch, f"{program.name}_{n}")
            parts.append("\n".join(entry.lines()))
            names.append(entry.name)
            shared[entry.name] = entry.shared
        held = tuple(
            (tuple(text(d) if isinstance(d, Expr) else d for d in b.shape), b.dtype.bytes)
            for b in workspaces(program)
        )
        spec = launch_spec(program, names, {"shared": shared, "workspaces": held})
        return Source(complete(BASE + "\n" + "\n\n".join(parts) + "\n"), "cuda", ".cu", spec)


class _Entry:
    """One ``__global__`` function."""

    def __init__(self, info: TargetInfo, program: TileProgram, launch: Launch, name: str) -> None:
        self.info, self.program, self.launch, self.name = info, program, launch, name
        self.printer = Printer(CUDA)
        self.shared = 0

    def lines(self) -> Iterator[str]:
        arguments = ", ".join(self.argument(p) for p in self.program.params)
        dims = "".join(
            f", {self.printer.type(v.dtype)} {self.printer.name(v)}" for v in used_dimensions(self.program)
        )
        dims += "".join(
            f", {self.printer.type(b.dtype)}* {self.printer.name(b)}" for b in workspaces(self.program)
        )
        bound = self.launch.thread_count
        yield f'extern "C" __global__ void __launch_bounds__({bound}) {self.name}({arguments}{dims}) {{'
        yield "  alignas(1024) extern __shared__ unsigned char arena[];"
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
                help="use smaller tiles or fewer of them",
            )

    def views(self) -> Iterator[str]:
        """Buffers that read the memory of another one with another type."""
        for b in buffers(self.launch.body):
            owner: Buffer | Var | None = b.base or b.source
            if owner is not None and b.space in (Space.GLOBAL, Space.SHARED):
                type = self.printer.type(b.dtype)
                yield f"  {type}* const {self.printer.name(b)} = reinterpret_cast<{type}*>({self.printer.name(owner)});"
