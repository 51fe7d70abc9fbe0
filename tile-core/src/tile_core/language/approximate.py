"""Scalar functions of which an approximation is allowed. Every function takes and gives single values, not tiles."""

# Names with two underscores are public here: they are the CUDA headers', and TileLang's.
# pyright: reportUnusedFunction=false

from __future__ import annotations

from typing import Any

from ..expr import Expr, call


def __exp(x: Any) -> Expr:
    """exp, an approximation allowed."""
    return call("__exp", x)


def __exp2(x: Any) -> Expr:
    """exp2, an approximation allowed."""
    return call("__exp2", x)


def __exp10(x: Any) -> Expr:
    """exp10, an approximation allowed."""
    return call("__exp10", x)


def __log(x: Any) -> Expr:
    """log, an approximation allowed."""
    return call("__log", x)


def __log2(x: Any) -> Expr:
    """log2, an approximation allowed."""
    return call("__log2", x)


def __log10(x: Any) -> Expr:
    """log10, an approximation allowed."""
    return call("__log10", x)


def __sin(x: Any) -> Expr:
    """sin, an approximation allowed."""
    return call("__sin", x)


def __cos(x: Any) -> Expr:
    """cos, an approximation allowed."""
    return call("__cos", x)


def __tan(x: Any) -> Expr:
    """tan, an approximation allowed."""
    return call("__tan", x)


def fast_rcp(x: Any) -> Expr:
    """1 / x, an approximation allowed."""
    return call("__rcp", x)
