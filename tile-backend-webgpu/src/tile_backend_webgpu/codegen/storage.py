"""How a buffer is declared in WGSL: takes its uses, gives its form and the WGSL type of its cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from tile_core.dtypes import DType
from tile_core.errors import Unsupported
from tile_core.expr import Buffer

from .scalars import CELL_BYTES, Scalars
from .uses import Use

LANES = 4  # of a vector


class Form(Enum):
    """``PLAIN``: an array of numbers. ``VECTOR``: of vec4, whose components are read but never written one by one: WGSL lets a
    write to a component touch the whole vector (WGSL, Memory Accesses). ``WORDS``: of u32, which hold several narrow elements or
    elements of several types. ``ATOMIC``: of atomic<u32> or atomic<i32>, for updates, and for words whose parts are
    written by different invocations.
    """

    PLAIN = 0
    VECTOR = 1
    WORDS = 2
    ATOMIC = 3


@dataclass(frozen=True)
class Stored:
    """``name`` of the variable; ``cell``: type of its numbers; ``base``: number of the cell where the buffer begins."""

    name: str
    form: Form
    cell: str
    base: int = 0

    def array(self, count: int | None = None) -> str:
        """The type of the variable, for ``count`` cells; None: the length is that of the binding."""
        match self.form:
            case Form.VECTOR:
                element = f"vec4<{self.cell}>"
            case Form.ATOMIC:
                element = f"atomic<{self.cell}>"
            case _:
                element = self.cell
        if count is None:
            return f"array<{element}>"
        return f"array<{element}, {max(1, -(-count // LANES) if self.form is Form.VECTOR else count)}>"


def in_memory(b: Buffer, use: Use, scalars: Scalars) -> tuple[Form, str]:
    """Form and cell of a tensor or a tile in workgroup memory."""
    own = {scalars.register(t) for t in use.dtypes | {b.dtype}}
    cell = own.pop() if len(own) == 1 else "u32"
    if use.whole:
        return Form.PLAIN, cell
    if use.atomic:
        signed = {t.name for t in use.dtypes | {b.dtype}} == {"int32"}
        return Form.ATOMIC, "i32" if signed else "u32"
    shared = [t for t in use.stored if scalars.packed(t) or (own and scalars.width(t) < 32)]
    if shared:
        return Form.ATOMIC, "u32"
    if own or any(scalars.packed(t) for t in use.dtypes | {b.dtype}):
        return Form.WORDS, "u32"
    whole = LANES * CELL_BYTES[cell]
    vectors = (use.moved_in | use.moved_out) and all(n % whole == 0 for n in use.moved_in)
    useful = any(n % whole == 0 for n in use.moved_in | use.moved_out)
    return (Form.VECTOR if vectors and useful and not use.stored else Form.PLAIN), cell


def private(b: Buffer, use: Use, scalars: Scalars) -> tuple[Form, str]:
    """Form and cell of an array that each invocation has for itself."""
    types = use.dtypes | {b.dtype}
    if use.matrix:
        return Form.PLAIN, use.matrix
    if len({t.name for t in types} - {"tfloat32"}) > 1:
        return Form.WORDS, "u32"
    return Form.PLAIN, scalars.register(b.dtype)


def joined(members: Sequence[tuple[Form, str, Sequence[DType]]]) -> tuple[Form, str]:
    """Form and cell of one variable in workgroup memory that several tiles lie in, some at the same place."""
    forms = {form for form, _, _ in members}
    cells = {cell for _, cell, _ in members}
    if Form.ATOMIC in forms:
        one = len(cells) == 1 and forms == {Form.ATOMIC}
        return Form.ATOMIC, cells.pop() if one else "u32"
    if len(cells) > 1 or Form.WORDS in forms:
        return Form.WORDS, "u32"
    return (Form.VECTOR if forms == {Form.VECTOR} else Form.PLAIN), cells.pop()


def no_pointers(b: Buffer) -> Unsupported:
    return Unsupported(
        f"{b.name} is a tensor over a pointer", b.span, why="WGSL has no pointers that come from outside",
        help="make it a parameter of its own",
    )  # fmt: skip
