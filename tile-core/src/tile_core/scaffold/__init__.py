"""A name in, a backend's package on disk out: one that the conformance kit's first two levels pass at once."""

from __future__ import annotations

from .new_backend import new_backend

__all__ = ["new_backend"]
