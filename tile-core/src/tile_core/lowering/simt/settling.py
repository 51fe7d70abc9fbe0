"""Accumulators that are registers for some steps and matrices for others: takes statements that say where they cross over.

Gives the steps that take them across, outside of loops that have no other use of the registers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ...expr import Buffer, Expr, Load, binary, const
from ...hardware import Atom
from ...layout.layout import Axis
from ...program import For, If, Invoke, Place, Stmt, Store
from ...program.visit import bodies, mapped, read_buffers, statements, written_buffers
from .context import Context, coordinate
from .instructions import WholeMatrices
from .nest import iterations

ENTER, LEAVE = "registers to matrices", "matrices to registers"


@dataclass(frozen=True)
class Crossing:
    """``registers`` of a thread, and the ``matrices`` of its subgroup, ``rows`` times ``columns``, each ``width`` wide."""

    registers: Buffer
    matrices: Buffer
    unit: WholeMatrices
    atom: Atom
    width: int
    rows: int
    columns: int


def entering(x: Crossing) -> Invoke:
    """From here on the values are in the matrices."""
    return Invoke(ENTER, (Place(x.matrices, (const(0),), "w"), Place(x.registers, (const(0),), "r")))


def leaving(x: Crossing) -> Invoke:
    """From here on the values are in the registers."""
    return Invoke(LEAVE, (Place(x.registers, (const(0),), "w"), Place(x.matrices, (const(0),), "r")))


def settled(context: Context, body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    """``body`` with all crossings done."""
    return _across(context, _outside(body)) if context.crossings else tuple(body)


def _outside(body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    """Crossings of a loop's body that nothing else in it asks for happen before and after the loop."""
    out: list[Stmt] = []
    for s in body:
        inner = mapped(s, lambda x: x, _outside) if bodies(s) else s
        if not isinstance(inner, For):
            out.append(inner)
            continue
        enters = [t for t in inner.body if _is(t, ENTER) and _only(inner.body, t)]
        registers = [_registers(t) for t in enters]
        leaves = [t for t in inner.body if _is(t, LEAVE) and _registers(t) in registers]
        rest = tuple(t for t in inner.body if t not in enters and t not in leaves)
        out += [*enters, replace(inner, body=rest), *leaves]
    return tuple(out)


def _is(s: Stmt, what: str) -> bool:
    return isinstance(s, Invoke) and s.function == what


def _registers(s: Stmt) -> Buffer | None:
    """The registers of a crossing."""
    places = [a for a in s.arguments if isinstance(a, Place)] if isinstance(s, Invoke) else []
    return places[0 if _is(s, LEAVE) else 1].buffer if places else None


def _only(body: Sequence[Stmt], enter: Stmt) -> bool:
    """Whether the registers are used by this crossing and one back after it alone."""
    mine = _registers(enter)
    uses = [s for s in statements(body) if mine in {*read_buffers(s), *written_buffers(s)} and not bodies(s)]
    return len(uses) == 2 and uses[0] is enter and _is(uses[1], LEAVE) and uses[1] in body


def _across(context: Context, body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    out: list[Stmt] = []
    for s in body:
        if _is(s, ENTER) or _is(s, LEAVE):
            registers = _registers(s)
            assert registers is not None
            out += _steps(context, context.crossings[registers], _is(s, ENTER))
        else:
            out.append(mapped(s, lambda x: x, lambda b: _across(context, b)) if bodies(s) else s)
    return tuple(out)


def _steps(context: Context, x: Crossing, enter: bool) -> Iterator[Stmt]:
    """One row of matrices after the other through a part of shared memory that each subgroup has for itself."""
    size = x.atom.shape[0] * x.width
    groups = context.threads // x.atom.threads
    scratch = context.scratch("crossing", groups * x.columns * size, x.registers.dtype)
    group = binary("*", binary("//", context.thread, x.atom.threads), x.columns * size)
    for i in range(x.rows):
        moves: list[Stmt] = []
        for j in range(x.columns):
            at = (context.simple(binary("+", group, j * size)),)
            matrix, memory = Place(x.matrices, (const(i * x.columns + j),)), Place(scratch, at)
            if enter:
                moves.append(x.unit.load(x.atom, "c", replace(matrix, access="w"), memory, x.width, False))
            else:
                moves.append(x.unit.store(x.atom, replace(memory, access="w"), matrix, x.width))
        # one statement: the subgroups' parts are apart, so that no barriers belong between the moves
        together = If(const(True), tuple(moves))
        elements = _elements(context, x, scratch, group, i, enter)
        yield from (elements, together) if enter else (together, elements)


def _elements(context: Context, x: Crossing, scratch: Buffer, group: Expr, i: int, enter: bool) -> Stmt:
    """This thread's elements of one row of matrices."""
    layout = x.atom.c(x.width)
    count = layout.cosize(Axis.REGISTER)
    j = context.var("j", x.columns)
    mine = replace(
        iterations(context, layout, layout.shape), guards=()
    )  # every subgroup has a part of its own
    register = coordinate(layout, mine.index, Axis.REGISTER, context)
    first = binary("*", binary("+", binary("*", const(i), x.columns), j), count)
    at = binary("+", binary("*", mine.index[0], x.width), mine.index[1])
    at = binary("+", binary("+", group, binary("*", j, x.atom.shape[0] * x.width)), at)
    there, here = (context.simple(at),), (context.simple(binary("+", first, register)),)
    if enter:
        step = Store(scratch, there, Load(x.registers, here))
    else:
        step = Store(x.registers, here, Load(scratch, there))
    return For(j, const(0), x.columns, mine.around((step,)), "unroll")
