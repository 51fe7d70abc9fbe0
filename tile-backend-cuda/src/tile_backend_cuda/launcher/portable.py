"""Launches through ctypes, for installations without the native launcher: the same checks and results, in more time."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from . import expressions
from .driver import Driver
from .outline import FLOAT32, FLOAT64, POINTER, TENSOR, Entry, Map, Outline, Param

WAYS = 4  # tensor maps kept of each description
MAP_BYTES = 128
CLUSTER, PROGRAMMATIC, COOPERATIVE = 4, 6, 2  # CUlaunchAttributeID


class Attribute(ctypes.Structure):
    """cuda.h: CUlaunchAttribute."""

    _fields_ = (("id", ctypes.c_int), ("pad", ctypes.c_int), ("value", ctypes.c_uint * 16))


class Config(ctypes.Structure):
    """cuda.h: CUlaunchConfig."""

    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(Attribute)),
        ("count", ctypes.c_uint),
    )


def stored_type(p: Param) -> Any:
    """The C type that holds a parameter's value."""
    if p.kind in (TENSOR, POINTER):
        return ctypes.c_void_p
    if p.kind in (FLOAT32, FLOAT64):
        return ctypes.c_float if p.kind == FLOAT32 else ctypes.c_double
    return ctypes.c_uint64  # little endian: a narrower parameter is its low bytes


class PortablePlan:
    """What ``_launch.Plan`` is, without ``call``. Threads may share it."""

    def __init__(self, driver: Driver, index: int, functions: Sequence[int], outline: Outline) -> None:
        self.driver = driver
        self.index = index
        self.outline = outline
        self.functions = functions
        self.types = [stored_type(p) for p in outline.params]
        self.maps = [_Maps(driver, m) for m in outline.maps]

    def launch(self, values: Sequence[int | float], grids: Sequence[Sequence[int]], stream: int) -> None:
        """Launch all entries whose grid has no zero. Raises ``TileError`` with the driver's reason."""
        slots = [v if isinstance(v, int) else 0 for v in values]
        wanted = [
            (e, (*g, 1, 1)[:3], f)
            for e, g, f in zip(self.outline.entries, grids, self.functions, strict=True)
            if all(g) and (not e.when or expressions.value(e.when, slots))
        ]
        if not wanted:
            return
        held = [_held(t, v) for t, v in zip(self.types, values, strict=True)]
        needed = {n for e, _, _ in wanted for s, n in e.passed if s == "m"}
        with self.driver.current(self.index):
            workspaces = self._allocated(slots, stream)
            try:
                maps = {n: self.maps[n].encoded(slots, workspaces) for n in needed}
                for entry, grid, function in wanted:
                    where = {"p": held, "m": maps, "w": workspaces}
                    passed = [where[source][n] for source, n in entry.passed]
                    self._launch(entry, grid, function, passed, stream)
            finally:
                for w in workspaces:
                    self.driver("cuMemFreeAsync", w, ctypes.c_void_p(stream))

    def _allocated(self, slots: Sequence[int], stream: int) -> list[ctypes.c_void_p]:
        out: list[ctypes.c_void_p] = []
        for size in self.outline.workspaces:
            bytes_ = max(1, expressions.value(size, slots))
            out.append(ctypes.c_void_p())
            self.driver(
                "cuMemAllocAsync", ctypes.byref(out[-1]), ctypes.c_size_t(bytes_), ctypes.c_void_p(stream)
            )
        return out

    def _launch(
        self, entry: Entry, grid: Sequence[int], function: int, passed: Sequence[Any], stream: int
    ) -> None:
        pointers = (ctypes.c_void_p * max(1, len(passed)))(*(ctypes.addressof(x) for x in passed))
        attributes = _attributes(entry)
        config = Config(
            (ctypes.c_uint * 3)(*grid),
            (ctypes.c_uint * 3)(*entry.block),
            entry.shared,
            stream,
            attributes,
            len(attributes),
        )
        self.driver("cuLaunchKernelEx", ctypes.byref(config), ctypes.c_void_p(function), pointers, None)


def _held(kind: Any, value: int | float) -> Any:
    if kind is ctypes.c_uint64:
        return kind(int(value) & (1 << 64) - 1)
    return kind(value)


def _attributes(entry: Entry) -> Any:
    rows: list[tuple[int, tuple[int, ...]]] = [(CLUSTER, entry.cluster)] if entry.cluster else []
    rows += [(PROGRAMMATIC, (1,))] if entry.pdl else []
    rows += [(COOPERATIVE, (1,))] if entry.cooperative else []
    return (Attribute * len(rows))(*(Attribute(n, 0, (ctypes.c_uint * 16)(*v)) for n, v in rows))


class _Maps:
    """The last few tensor maps of one description, by address and extents."""

    def __init__(self, driver: Driver, map: Map) -> None:
        self.driver = driver
        self.map = map
        self.known: dict[tuple[int, ...], Any] = {}

    def encoded(self, slots: Sequence[int], workspaces: Sequence[ctypes.c_void_p]) -> Any:
        dims = [expressions.value(d, slots) for d in self.map.dims]
        strides = [expressions.value(s, slots) for s in self.map.strides[1:]]
        if min(dims) <= 0:
            return (ctypes.c_char * MAP_BYTES)()  # no elements: the kernel gets zeros, which fault when used
        of = slots[self.map.param] if self.map.workspace < 0 else workspaces[self.map.workspace].value or 0
        key = (of, *dims, *strides)
        found = self.known.get(key)
        if found is None:
            found = self._encode(key[0], dims, strides)
            if len(self.known) >= WAYS:
                self.known.pop(next(iter(self.known)), None)
            self.known[key] = found
        return found

    def _encode(self, address: int, dims: Sequence[int], strides: Sequence[int]) -> Any:
        spec, rank = self.map.spec, len(dims)
        kind, interleave, swizzle, promotion, fill = spec.numbers
        raw = (ctypes.c_char * (MAP_BYTES + 64))()
        made = (ctypes.c_char * MAP_BYTES).from_buffer(raw, -ctypes.addressof(raw) % 64)
        self.driver(
            "cuTensorMapEncodeTiled",
            made,
            kind,
            rank,
            ctypes.c_void_p(address),
            (ctypes.c_uint64 * rank)(*dims),
            (ctypes.c_uint64 * rank)(*strides),
            (ctypes.c_uint * rank)(*spec.box),
            (ctypes.c_uint * rank)(*spec.all_steps),
            interleave,
            swizzle,
            promotion,
            fill,
        )
        return made
