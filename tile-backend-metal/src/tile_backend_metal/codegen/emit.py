"""Plans to Metal Shading Language: one kernel function for each launch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tile_core.backend import Source
from tile_core.errors import InternalError, Unsupported
from tile_core.hardware import TargetInfo
from tile_core.inference.plan import TilePlan
from tile_core.lowering.entry import Entry, entry_names, entry_spec
from tile_core.lowering.printer import Printer
from tile_core.lowering.simt.lower import lower_for
from tile_core.program import Atomic, Launch, TileProgram

from ..compiler.options import Options
from .atomics import ATOMICS, OPERATIONS, PART
from .base import SECTIONS
from .dialect import dialect
from .instructions import instructions
from .matrix_unit import MULTIPLY, TEXT
from .moves import SHUFFLES, moves_text
from .ordering import orders_global
from .spaces import SPACES, pointer

VECTOR = 16  # bytes of the widest access
BUFFERS = 31  # "Metal Feature Set Tables": buffers of a function


class MetalCodegen:
    """Emits MSL. Pure and deterministic."""

    def __init__(self, info: TargetInfo) -> None:
        self.info = info

    def emit(self, plan: TilePlan) -> Source:
        """The source of all launches.

        Raises:
            Unsupported: a type, function or amount of threadgroup memory that the family does not have, with the span.
        """
        lowered = lower_for(plan, instructions(self.info))
        program = lowered.program
        names = entry_names(plan.program)
        entries = [
            _Kernel(self.info, program, launch, name, bool(written.thread_vars))
            for launch, written, name in zip(program.launches, plan.program.launches, names, strict=True)
        ]
        kernels = "\n\n".join("\n".join(e.lines()) for e in entries) + "\n"
        more: dict[str, Any] = {
            "shared": {e.name: e.shared for e in entries},
            "language": Options.of_target(self.info).language,
        }
        if MULTIPLY in kernels:
            more["ordered"] = True  # the launcher compares the order of matrices with the atom table first
        spec = entry_spec(plan.program, {e.name: e.entry for e in entries}, **more)
        return Source(head(kernels) + "\n" + kernels, "metal", ".metal", spec)


def head(kernels: str) -> str:
    """What stands before the kernels: the functions that they call, and what those need."""
    parts = [section for word, section in SECTIONS if word in kernels]
    spaces = [space for space in ATOMICS if _calls_atomics(kernels, space)]
    parts += [OPERATIONS, PART] if spaces else []
    parts += [ATOMICS[space] for space in spaces]
    parts += [SHUFFLES] if "tile_shuffle_" in kernels else []
    parts += [TEXT] if MULTIPLY in kernels else []
    return "".join((*parts, moves_text(kernels))).lstrip()


def _calls_atomics(kernels: str, space: str) -> bool:
    return any(
        line.split("(")[0].endswith(f"_{space}")
        for line in kernels.replace("= ", "\n").split("\n")
        if "tile_atomic_" in line
    )


@dataclass
class _Printer(Printer):
    """MSL's functions differ by the address space of their pointers."""

    def updater(self, s: Atomic) -> str:
        try:
            return f"{self.dialect.atomics(s.op, s.buffer.dtype)}_{SPACES[s.buffer.space]}"
        except Unsupported as error:
            raise Unsupported(error.message, s.span, why=error.why, help=error.help) from None


class _Kernel:
    """One kernel function. ``threaded``: the user wrote what each thread does."""

    def __init__(
        self, info: TargetInfo, program: TileProgram, launch: Launch, name: str, threaded: bool
    ) -> None:
        self.name = name
        self.printer = _Printer(dialect(device=threaded or orders_global(launch)))
        self.entry = Entry(info, program, launch, self.printer, pointer)

    @property
    def shared(self) -> int:
        """Bytes of the arena: whole vectors, so that the word around a last short element is part of it."""
        return -(-self.entry.shared // VECTOR) * VECTOR

    def parameters(self) -> Iterator[str]:
        given = (*self.entry.arguments(), *self.entry.dimensions(), *self.entry.workspaces())
        if len(given) > BUFFERS:
            raise Unsupported(
                f"the kernel has {len(given)} parameters, dimensions and workspaces, Metal passes {BUFFERS}",
                self.entry.launch.span,
                help="use fewer tensors and fewer symbolic dimensions",
            )
        for n, (type, name) in enumerate(given):
            passed = f"{type} {name}" if type.endswith("*") else f"constant {type}& {name}"
            yield f"{passed} [[buffer({n})]]"
        yield "uint3 tile_block [[threadgroup_position_in_grid]]"
        yield "uint tile_thread [[thread_index_in_threadgroup]]"

    def lines(self) -> Iterator[str]:
        launch = self.entry.launch
        given = ",\n    ".join(self.parameters())
        yield f"[[kernel, max_total_threads_per_threadgroup({launch.thread_count})]]"
        yield f"void {self.name}(\n    {given}) {{"
        tiles = list(self.entry.tiles("tile_arena"))
        if tiles:
            yield f"  alignas({VECTOR}) threadgroup uchar tile_arena[{self.shared}];"
        for line in (*self.numbers(launch), *tiles, *self.entry.views()):
            yield f"  {line}"
        yield from self.printer.block(launch.body, 1)
        yield "}"

    def numbers(self, launch: Launch) -> Iterator[str]:
        """Block numbers and this thread's number. The first block number changes fastest."""
        if len(launch.vars) > 3:
            raise InternalError("a launch of more than three dimensions")
        for v, axis in zip(launch.vars, "xyz", strict=False):
            yield f"const int {self.printer.name(v)} = int(tile_block.{axis});"
        yield f"const int {self.printer.name(launch.thread_vars[0])} = int(tile_thread);"
