"""A launch specification in the words of the launcher: how each parameter is checked and passed, and each launch's attributes.

What ``LaunchSpec.extra`` may hold for this backend; all of it can be left out, and is kept by name of the entry point:

- ``shared``: bytes of dynamic shared memory; ``cluster``: blocks of a cluster, three numbers;
- ``pdl``: it may start before the kernel before it has ended (programmatic dependent launch); ``cooperative``: all blocks at once;
- ``when``: an expression, the entry is launched only where it is not zero; a tensor's name stands for its address;
- ``parameters``: names of the kernel's parameters in order. Without it: those of the signature, then maps, then workspaces.

And for all entries: ``tensor_maps``, rows of ``TensorMap``; ``workspaces``, rows (shape, bytes of an element), passed as
``workspace0`` and on. Scalars are passed in their own type, dimensions as theirs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tile_core.backend import LaunchParam, LaunchSpec
from tile_core.errors import InternalError

from .expressions import Code, code
from .tensor_maps import TensorMap

# Kinds of parameters, the letters of sources/plan.h.
TENSOR, POINTER, INTEGER, FLOAT32, FLOAT64, RAW, DIMENSION = "tpifdrn"

INTEGERS = {f"{kind}{bits}": (bits, kind == "int") for kind in ("int", "uint") for bits in (8, 16, 32, 64)}
INTEGERS["bool"] = (1, False)
FLOATS = {"float32": FLOAT32, "tfloat32": FLOAT32, "float64": FLOAT64}

# DLDataTypeCode of dlpack.h and bits, of types that one element of a tensor holds alone.
DLPACK = {
    **{f"int{b}": (0, b) for b in (8, 16, 32, 64)},
    **{f"uint{b}": (1, b) for b in (8, 16, 32, 64)},
    **{f"float{b}": (2, b) for b in (16, 32, 64)},
    "tfloat32": (2, 32),
    "bfloat16": (4, 16),
    "bool": (6, 8),
    "float8_e4m3fn": (10, 8),
    "float8_e4m3fnuz": (11, 8),
    "float8_e5m2": (12, 8),
    "float8_e5m2fnuz": (13, 8),
    "float8_e8m0fnu": (14, 8),
}


@dataclass(frozen=True, slots=True)
class Param:
    """A parameter of the signature. ``kind``: a letter of sources/plan.h; ``type_code``: of DLPack."""

    name: str
    kind: str
    dtype: str
    bits: int = 64
    is_signed: bool = False
    type_code: int = -1
    alignment: int = 1
    row_major: bool = True
    lone: tuple[int, ...] = ()  # slots of dimensions that stand alone, else -1
    dims: tuple[Code, ...] = ()
    strides: tuple[Code, ...] = ()  # (): not checked


@dataclass(frozen=True, slots=True)
class Map:
    """A tensor map with its expressions as code. ``param``: the number of the tensor; of a ``workspace`` it is -1, and the other
    way round.
    """

    spec: TensorMap
    param: int
    workspace: int
    dims: tuple[Code, ...]
    strides: tuple[Code, ...]  # () for the innermost dimension


@dataclass(frozen=True, slots=True)
class Entry:
    """A launch. ``passed``: (``p`` parameter, ``m`` map or ``w`` workspace, number) for each parameter of the kernel."""

    name: str
    when: Code
    grid: tuple[Code, Code, Code]
    block: tuple[int, int, int]
    shared: int
    cluster: tuple[int, ...]
    pdl: bool
    cooperative: bool
    passed: tuple[tuple[str, int], ...]

    @property
    def threads(self) -> int:
        return math.prod(self.block)


@dataclass(frozen=True, slots=True)
class Outline:
    """A launch specification, ready to be run. ``given``: parameters that a caller passes, the first ones."""

    params: tuple[Param, ...]
    given: int
    slots: int
    maps: tuple[Map, ...]
    workspaces: tuple[Code, ...]  # bytes
    entries: tuple[Entry, ...]


def outline(launch: LaunchSpec) -> Outline:
    """Read a launch specification.

    Raises:
        InternalError: it says something that this launcher does not know.
    """
    try:
        return _outline(launch)
    except (ValueError, KeyError, TypeError, SyntaxError) as error:
        raise InternalError(
            f"the launch specification is wrong: {error}", why="generated code and its launcher disagree"
        ) from error


def _outline(launch: LaunchSpec) -> Outline:
    extra = launch.extra
    names = {p.name: n for n, p in enumerate(launch.params)}
    known = dict(names)  # a dimension that is no parameter is known by the shapes alone
    for p in launch.params:
        for d in (*p.shape, *p.strides):
            if isinstance(d, str) and d.isidentifier():
                known.setdefault(d, len(known))
    params = tuple(_param(p, known) for p in launch.params)
    given = sum(p.kind != DIMENSION for p in params)
    if any(p.kind == DIMENSION for p in params[:given]):
        raise ValueError("dimensions come after all other parameters")
    floats = {p.name for p in params if p.kind in (FLOAT32, FLOAT64, RAW)}
    integral = {n: s for n, s in names.items() if n not in floats}
    held = {f"workspace{n}": n for n in range(len(extra.get("workspaces", ())))}
    maps = tuple(_map(TensorMap.of_row(row), integral, held) for row in extra.get("tensor_maps", ()))
    workspaces = tuple(_bytes(shape, size, integral) for shape, size in extra.get("workspaces", ()))
    passed = {p.name: ("p", n) for n, p in enumerate(params)}
    passed |= {m.spec.name: ("m", n) for n, m in enumerate(maps)}
    passed |= {name: ("w", n) for name, n in held.items()}
    entries = tuple(_entry(row, extra, integral, passed) for row in launch.entries)
    return Outline(params, given, len(known), maps, workspaces, entries)


def _param(p: LaunchParam, slots: Mapping[str, int]) -> Param:
    if p.kind == "dim":
        bits, is_signed = INTEGERS[p.dtype]
        return Param(p.name, DIMENSION, p.dtype, bits, is_signed)
    if p.kind == "pointer":
        return Param(p.name, POINTER, p.dtype)
    if p.kind == "tensor":
        return _tensor(p, slots)
    if p.dtype in FLOATS:
        return Param(p.name, FLOATS[p.dtype], p.dtype)
    if p.dtype in INTEGERS:
        bits, is_signed = INTEGERS[p.dtype]
        return Param(p.name, INTEGER, p.dtype, bits, is_signed)
    return Param(p.name, RAW, p.dtype)


def _tensor(p: LaunchParam, slots: Mapping[str, int]) -> Param:
    type_code, bits = DLPACK.get(p.dtype, (-1, 0))
    lone = tuple(slots[d] if isinstance(d, str) and d.isidentifier() else -1 for d in p.shape)
    return Param(
        p.name,
        TENSOR,
        p.dtype,
        bits,
        type_code=type_code,
        alignment=max(1, p.alignment),
        row_major=not p.strides,
        lone=lone,
        dims=tuple(code(d, slots) for d in p.shape),
        strides=tuple(() if s == "" else code(s, slots) for s in p.strides),
    )


def _map(spec: TensorMap, slots: Mapping[str, int], workspaces: Mapping[str, int]) -> Map:
    dims = tuple(code(d, slots) for d in spec.dims)
    workspace = workspaces.get(spec.of, -1)
    param = slots[spec.of] if workspace < 0 else -1
    return Map(spec, param, workspace, dims, ((), *(code(s, slots) for s in spec.strides)))


def _bytes(shape: Sequence[int | str], size: int, slots: Mapping[str, int]) -> Code:
    return code(" * ".join((str(size), *(f"({d})" for d in shape))), slots)


def _entry(
    row: tuple[str, tuple[int | str, ...], tuple[int, ...]],
    extra: Mapping[str, Any],
    slots: Mapping[str, int],
    passed: Mapping[str, tuple[str, int]],
) -> Entry:
    name, grid, threads = row
    block = (*threads, 1, 1)[: max(3, len(threads))]
    codes = tuple(code(g, slots) for g in (*grid, *(1,) * (3 - len(grid))))
    if len(codes) != 3 or len(block) != 3:
        raise ValueError(f"{name} has a grid of {len(codes)} and blocks of {len(block)} dimensions")
    of = {key: extra.get(key, {}).get(name) for key in ("when", "shared", "cluster", "pdl", "cooperative")}
    parameters = extra.get("parameters", {}).get(name, tuple(passed))
    when = code(of["when"], slots) if of["when"] is not None else ()
    cluster = tuple(of["cluster"] or ())
    if math.prod(cluster) < 1 or len(cluster) not in (0, 3):
        raise ValueError(f"{name} has clusters of {cluster} blocks")
    return Entry(
        name,
        when,
        codes,
        block,
        int(of["shared"] or 0),
        cluster,
        bool(of["pdl"]),
        bool(of["cooperative"]),
        tuple(passed[p] for p in parameters),
    )
