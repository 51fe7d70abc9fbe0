"""Builds tile programs by hand, and runs them on the cpu target with numpy arrays."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tile_core.cpu.backend import CpuBackend
from tile_core.dtypes import DType, dtype
from tile_core.expr import Buffer, Expr, Load, Space, Var, expr
from tile_core.graph import Graph
from tile_core.inference.plan import TilePlan
from tile_core.program import Alloc, Launch, Param, Region, Stmt, TileProgram

BACKEND = CpuBackend()
_numbers = itertools.count(1)


def var(name: str, type: str = "int32") -> Var:
    return Var(name, dtype(type), next(_numbers))


def dim(name: str, type: str = "int32") -> Var:
    """A symbolic dimension."""
    return Var(name, dtype(type), 0)


def tensor(
    name: str, shape: Sequence[Any], type: str = "float32", strides: Sequence[Any] | None = None
) -> Buffer:
    return Buffer(name, tuple(shape), dtype(type), Space.GLOBAL, None if strides is None else tuple(strides))


def tile(name: str, shape: Sequence[int], type: str = "float32", space: Space = Space.SHARED) -> Buffer:
    return Buffer(name, tuple(shape), dtype(type), space, number=next(_numbers))


def fragment(name: str, shape: Sequence[int], type: str = "float32") -> Buffer:
    return tile(name, shape, type, Space.FRAGMENT)


def cell(name: str, type: str = "float32") -> Buffer:
    return tile(name, (), type, Space.VAR)


def at(buffer: Buffer, *indices: Any) -> Load:
    return Load(buffer, tuple(expr(i) for i in indices))


def whole(buffer: Buffer) -> Region:
    zero = expr(0)
    return Region(buffer, (zero,) * buffer.ndim, buffer.shape, (False,) * buffer.ndim, whole=True)


def region(buffer: Buffer, *parts: Any) -> Region:
    """Each part is (start, extent), or an index."""
    start = tuple(expr(p[0] if isinstance(p, tuple) else p) for p in parts)
    extent = tuple(p[1] if isinstance(p, tuple) else 1 for p in parts)
    return Region(buffer, start, extent, tuple(not isinstance(p, tuple) for p in parts))


@dataclass
class Run:
    """A compiled program."""

    source: Any
    artifact: Any
    kernel: Any
    arguments: dict[str, Any] = field(default_factory=dict)

    def __call__(self, *arguments: Any, **symbols: int) -> None:
        """Arrays and numbers in the order of the parameters; symbolic dimensions by name."""
        launch = self.source.launch
        values: list[Any] = []
        names: dict[str, Any] = dict(symbols)
        for p, a in zip(launch.params, arguments, strict=False):
            if isinstance(a, np.ndarray):
                values.append(a.ctypes.data)
            else:
                values.append(a)
                names[p.name] = a
        values += [names[p.name] for p in launch.params[len(arguments) :]]
        grids = [tuple(extent(e, names) for e in grid) for _, grid, _ in launch.entries]
        self.kernel(values, grids)


def extent(value: int | str, names: dict[str, Any]) -> int:
    return value if isinstance(value, int) else eval(value, {"min": min, "max": max}, names)


def launch(
    body: Sequence[Stmt],
    vars: Sequence[Var] = (),
    grid: Sequence[int | Expr] = (),
    threads: Sequence[int] = (128,),
    thread_vars: Sequence[Var] = (),
) -> Launch:
    if not vars:
        vars, grid = (var("bx"),), (1,)
    return Launch(tuple(vars), tuple(grid), tuple(threads), tuple(body), tuple(thread_vars))


def allocs(*buffers: Buffer) -> list[Stmt]:
    return [Alloc(b) for b in buffers]


def program(params: Sequence[Buffer | Var], *body: Stmt, name: str = "kernel") -> TileProgram:
    return TileProgram(name, tuple(Param(p.name, p) for p in params), body)


def plan(of: TileProgram, arch: str = "") -> TilePlan:
    info = next(i for i in BACKEND.targets() if arch in ("", i.target.arch))
    return TilePlan(of, info, Graph(of, (), (), ()))


def build(of: TileProgram, optimize: int = 3) -> Run:
    made = plan(of)
    source = BACKEND.codegen(made.info).emit(BACKEND.lowering(made.info).legalize(made))
    artifact = BACKEND.compiler(made.info).compile(source, {"optimize": optimize})
    return Run(source, artifact, BACKEND.launcher(BACKEND.device()).load(artifact, source.launch))


def kernel(params: Sequence[Buffer | Var], body: Sequence[Stmt], **options: Any) -> Run:
    """One launch."""
    return build(program(params, launch(body, **options)))


def elements(type: DType | str) -> np.dtype:
    """The numpy type of an array of ``type``."""
    import ml_dtypes

    name = dtype(type).name
    return np.dtype(getattr(ml_dtypes, name, None) or name)
