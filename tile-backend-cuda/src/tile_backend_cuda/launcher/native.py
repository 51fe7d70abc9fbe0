"""The native launcher's plan from an outline; None where the extension was not built or the kernel is beyond its limits."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

from .driver import Driver
from .exchange import exchange
from .failures import raise_failure
from .outline import Entry, Map, Outline, Param

CUDA = 2  # kDLCUDA of dlpack.h
INTERFACE = 2  # the number in sources/launch.c: a build of other sources is not used


def module() -> ModuleType | None:
    """The compiled extension, or None if this installation was built without a C compiler, or from other sources."""
    found = built()
    return found if found is not None and found.INTERFACE == INTERFACE else None


def built() -> ModuleType | None:
    """The compiled extension as it lies there."""
    try:
        return import_module("._launch", __package__)
    except ImportError:
        return None


def plan(
    extension: ModuleType,
    driver: Driver,
    index: int,
    functions: Sequence[int],
    outline: Outline,
    device_type: int = CUDA,
) -> Any | None:
    """A ``Plan`` of the extension; None if the kernel has more parameters or dimensions than it holds."""
    rows = tuple(_entry(e, f) for e, f in zip(outline.entries, functions, strict=True))
    try:
        return extension.Plan(
            driver.addresses,
            device_type,
            index,
            driver.context(index),
            outline.given,
            outline.slots,
            tuple(map(_param, outline.params)),
            tuple(map(_map, outline.maps)),
            outline.workspaces,
            rows,
            exchange,
            raise_failure,
        )
    except ValueError:  # over a limit of the extension: ctypes has none
        return None


def _param(p: Param) -> tuple[Any, ...]:
    return (
        p.kind,
        p.bits,
        int(p.is_signed),
        p.type_code,
        p.alignment,
        p.row_major,
        p.lone,
        p.dims,
        p.strides,
    )


def _map(m: Map) -> tuple[Any, ...]:
    return (m.param, m.workspace, *m.spec.numbers, m.spec.box, tuple(m.spec.all_steps), m.dims, m.strides)


def _entry(e: Entry, function: int) -> tuple[Any, ...]:
    return function, e.when, e.grid, e.block, e.shared, e.cluster, e.pdl, e.cooperative, e.passed
