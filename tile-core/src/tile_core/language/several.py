"""Arguments that are one value or several: an extent ``128`` or a shape ``(128, 64)``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeGuard


def is_several(value: Any) -> TypeGuard[Sequence[Any]]:
    """Whether ``value`` is a tuple or a list."""
    return isinstance(value, (tuple, list))


def several(value: Any) -> tuple[Any, ...]:
    """A tuple or list as a tuple, a single value as a tuple of one."""
    return tuple(value) if is_several(value) else (value,)


def is_tuple(value: Any) -> TypeGuard[tuple[Any, ...]]:
    """Whether ``value`` is what Python makes of ``a, b`` between brackets."""
    return isinstance(value, tuple)
