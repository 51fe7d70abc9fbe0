"""Proof obligations of a program and whether they hold. Takes a tile program, gives obligations with reasons."""

from __future__ import annotations

from .bounds import Obligation, Status, prove_in_bounds

__all__ = ["Obligation", "Status", "prove_in_bounds"]
