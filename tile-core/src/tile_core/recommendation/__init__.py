"""What to compile with where the user left it open. Takes a tile program and target facts, gives choices."""

from __future__ import annotations

from .recommend import threads

__all__ = ["threads"]
