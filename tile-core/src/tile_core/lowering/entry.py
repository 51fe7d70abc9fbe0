"""One launch of a thread-level program as an entry point in C++: the parts of its text, and its call, that vendors share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..backend import LaunchSpec
from ..errors import InternalError, Unsupported
from ..expr import Buffer, Space, Var
from ..hardware import TargetInfo
from ..program import Alloc, Launch, TileProgram
from ..program.verify import used_dimensions
from ..program.visit import buffers
from ..signature import extents, launch_params, launch_spec, workspaces
from .printer import Printer
from .simt.arena import size_of


def plain_pointer(space: Space, type: str) -> str:
    """C++ without address spaces."""
    return f"{type}*"


@dataclass
class Entry:
    """``pointer`` spells the type of a pointer into a memory space; ``shared`` becomes the bytes of the arena that are used."""

    info: TargetInfo
    program: TileProgram
    launch: Launch
    printer: Printer
    pointer: Callable[[Space, str], str] = plain_pointer
    shared: int = field(default=0, init=False)

    def arguments(self) -> Iterator[tuple[str, str]]:
        """Type and name of each parameter of the program, in order."""
        for p in self.program.params:
            name = self.printer.name(p.value)
            if isinstance(p.value, Var) and p.value.dtype.kind == "handle":
                yield self.pointer(Space.GLOBAL, "void"), name
            elif isinstance(p.value, Buffer):
                yield self.pointer(Space.GLOBAL, self.printer.type(p.value.dtype)), name
            else:
                yield self.printer.type(p.value.dtype), name

    def dimensions(self) -> Iterator[tuple[str, str]]:
        """Type and name of the symbolic dimensions, which come after the parameters."""
        for v in used_dimensions(self.program):
            yield self.printer.type(v.dtype), self.printer.name(v)

    def workspaces(self) -> Iterator[tuple[str, str]]:
        """Type and name of the pointers to global memory that the program asks for, which come last."""
        for b in workspaces(self.program):
            yield self.pointer(Space.GLOBAL, self.printer.type(b.dtype)), self.printer.name(b)

    def tiles(self, arena: str) -> Iterator[str]:
        """Shared tiles in the arena (bytes, by its name), where the lowering has put them. Raises ``Unsupported``: too large."""
        for s in self.launch.body:
            if not isinstance(s, Alloc) or s.buffer.space is not Space.SHARED:
                continue
            if s.offset is None:
                raise InternalError(f"{s.buffer.name} has no place in shared memory")
            type = self.pointer(Space.SHARED, self.printer.type(s.buffer.dtype))
            yield f"{type} const {self.printer.name(s.buffer)} = reinterpret_cast<{type}>({arena} + {s.offset});"
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
                type = self.pointer(b.space, self.printer.type(b.dtype))
                yield f"{type} const {self.printer.name(b)} = reinterpret_cast<{type}>({self.printer.name(owner)});"


def entry_spec(program: TileProgram, entries: Mapping[str, Entry], **more: Any) -> LaunchSpec:
    """The launch specification of entry points by name, each with the launch it stands for, after their text was made.

    ``program`` is the one before the lowering. In ``LaunchSpec.extra``: the names of the ``parameters`` that each entry point gets
    (those of the program and its dimensions, then ``workspace0`` and so on), the bytes of ``shared`` memory of each, the
    ``workspaces`` (extents, bytes of an element) that a call allocates; and ``more``.
    """
    given = (
        *(p.name for p in launch_params(program)),
        *(f"workspace{k}" for k in range(len(workspaces(program)))),
    )
    extra = {
        "shared": {name: e.shared for name, e in entries.items()},
        "parameters": dict.fromkeys(entries, given),
        "workspaces": tuple((extents(b.shape), b.dtype.bytes) for b in workspaces(program)),
        **more,
    }
    return launch_spec(program, list(entries), extra, [e.launch for e in entries.values()])
