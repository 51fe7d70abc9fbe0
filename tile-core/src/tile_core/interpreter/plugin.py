"""Announces the interpreter to the registry."""

from __future__ import annotations

from ..hookspecs import hookimpl
from ..registry import Registry


@hookimpl
def tile_register_backends(registry: Registry) -> None:
    from .backend import InterpreterBackend

    registry.add(InterpreterBackend())
