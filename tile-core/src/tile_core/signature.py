"""How a program is called: its parameters, symbolic dimensions and grids, in words that a launcher needs no program for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .backend import LaunchParam, LaunchSpec
from .expr import Buffer, Expr, Var, text
from .program import Alloc, TileProgram
from .program.verify import used_dimensions
from .program.visit import places, statements, written_buffers


def launch_spec(
    program: TileProgram, entries: Sequence[str], extra: Mapping[str, Any] | None = None
) -> LaunchSpec:
    """The launch specification of a complete program; ``entries`` names one entry point for each of its launches.

    Parameters come in the order of the signature, then one of kind ``dim`` for each symbolic dimension.
    """
    launches = program.launches
    if len(launches) != len(entries):
        raise ValueError(f"{len(entries)} entry points for {len(launches)} launches")
    grids = [extents(s.grid) for s in launches]
    rows = [(name, grid, s.threads) for name, grid, s in zip(entries, grids, launches, strict=True)]
    return LaunchSpec(launch_params(program), tuple(rows), program.outputs, dict(extra or {}))


def launch_params(program: TileProgram) -> tuple[LaunchParam, ...]:
    """Parameters in the order of the signature, then one of kind ``dim`` for each symbolic dimension."""
    written = {b.storage for s in statements(program.body) for b in written_buffers(s)}
    aligned: dict[Buffer, int] = {}
    for p in (p for s in statements(program.body) for p in places(s)):
        aligned[p.buffer.storage] = max(p.aligned, aligned.get(p.buffer.storage, 1))
    own = [_param(p.name, p.value, written, aligned) for p in program.params]
    return (*own, *(LaunchParam(v.name, "dim", v.dtype.name) for v in used_dimensions(program)))


def workspaces(program: TileProgram) -> tuple[Buffer, ...]:
    """Buffers in global memory that the launcher allocates at each call."""
    return tuple(s.buffer for s in program.body if isinstance(s, Alloc))


def _param(
    name: str, value: Buffer | Var, written: set[Buffer], aligned: Mapping[Buffer, int]
) -> LaunchParam:
    if isinstance(value, Buffer):
        shape, strides, kind = extents(value.shape), extents(value.strides or ()), value.dtype
        alignment = max(kind.bytes, aligned.get(value, 1))
        return LaunchParam(name, "tensor", kind.name, shape, strides, value in written, alignment)
    kind = "pointer" if value.dtype.kind == "handle" else "scalar"
    return LaunchParam(name, kind, value.dtype.name)


def extents(shape: Sequence[int | Expr]) -> tuple[int | str, ...]:
    """Extents as a launch specification has them: numbers, or text over the symbolic dimensions."""
    return tuple(text(d) if isinstance(d, Expr) else d for d in shape)
