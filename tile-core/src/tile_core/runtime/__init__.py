"""Run kernels: from a user's function to a launch, through the cache of compiled kernels."""

from __future__ import annotations

from .bench import Comparison, bench, compare
from .bundle import Bundle, load
from .compiled import Kernel
from .jit import Jit, compile, jit, spec

__all__ = ["Bundle", "Comparison", "Jit", "Kernel", "bench", "compare", "compile", "jit", "load", "spec"]
