"""Where each buffer of a launch lives: a parameter, the stack, or the scratch memory that the launcher hands in."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

from .. import _tvm as tvm
from ..dtypes import ALL
from ..errors import KernelError, Unsupported
from ..expr import Buffer, Space, shape_text
from .nodes import Node
from .numbers import storage

STACK_BYTES = 512  # a buffer up to this size is a local variable, which LLVM may keep in registers


@dataclass(frozen=True)
class Scratch:
    """A block of scratch memory: its pointer parameter and its size in bytes."""

    pointer: Node
    bytes: int


@dataclass
class Memory:
    """Buffers of one launch. ``pointers`` are parameters of tensors and workspaces, by buffer.

    ``arrays`` are TVM's views of them, one for each type of element; ``declarations`` make them known to TVM.
    """

    pointers: dict[Buffer, Node]
    arrays: dict[tuple[Buffer, str], Node] = field(default_factory=dict)
    scratch: list[Scratch] = field(default_factory=list)
    declarations: list[Node] = field(default_factory=list)
    data: dict[Buffer, Node] = field(default_factory=dict)

    def array(self, buffer: Buffer) -> Node:
        """A flat TVM buffer over the storage of ``buffer``, with elements as ``buffer`` has them."""
        kind = storage(buffer.dtype, buffer.span)
        owner = buffer.storage
        key = (owner, kind)
        if key not in self.arrays:
            self.arrays[key] = self._declare(owner, kind)
        return self.arrays[key]

    def _declare(self, owner: Buffer, kind: str) -> Node:
        pointer = self.pointers.get(owner)
        if pointer is None and owner not in self.data:
            size, own = _elements(owner), storage(owner.dtype, owner.span)
            if size * owner.dtype.bytes <= STACK_BYTES:
                return self._on_stack(owner, own, size, kind)
            pointer = self.pointers[owner] = self._new_scratch(owner.name, own, size * owner.dtype.bytes)
        if pointer is None:
            pointer = self.data[owner]
        array = tvm.flat_buffer(owner.name, kind, 1, pointer)
        self.declarations.append(tvm.DeclBuffer(array, data=pointer))
        return array

    def _on_stack(self, owner: Buffer, own: str, size: int, kind: str) -> Node:
        array = tvm.flat_buffer(owner.name, own, max(size, 1))
        self.declarations.append(tvm.AllocBuffer(array))
        self.arrays[(owner, own)] = array
        self.data[owner] = tvm.tirx.buffer_data(array)
        return array if kind == own else self._declare(owner, kind)

    def temporary(self, name: str, kind: str, size: int) -> Node:
        """Scratch memory of ``size`` elements that no buffer of the program names."""
        pointer = self._new_scratch(name, kind, size * ALL[kind].bytes)
        array = tvm.flat_buffer(name, kind, 1, pointer)
        self.declarations.append(tvm.DeclBuffer(array, data=pointer))
        return array

    def cell(self, name: str, kind: str) -> Node:
        """One element on the stack."""
        array = tvm.flat_buffer(name, kind, 1)
        self.declarations.append(tvm.AllocBuffer(array))
        return array

    def _new_scratch(self, name: str, kind: str, size: int) -> Node:
        pointer = tvm.pointer(name, kind)
        self.scratch.append(Scratch(pointer, size))
        return pointer


def _elements(buffer: Buffer) -> int:
    shape = buffer.static_shape
    if shape is None:
        raise Unsupported(
            f"{buffer.name} has the shape {shape_text(buffer.shape)}, which is only known at launch",
            buffer.span,
            why="memory of a block is laid out when the kernel is compiled",
            help="give an on-chip buffer a fixed shape",
        )
    if buffer.space is Space.GLOBAL:
        raise KernelError(
            f"{buffer.name} is global memory, but neither a parameter nor a workspace", buffer.span
        )
    return prod(shape)
