"""The meaning of the language: runs tile programs with numpy, op by op, with every access checked."""

from __future__ import annotations

from .machine import run

__all__ = ["run"]
