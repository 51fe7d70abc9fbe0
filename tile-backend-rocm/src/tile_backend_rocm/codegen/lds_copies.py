"""Asynchronous copies of a wave for the lowering: places in, calls of ``lds_copy`` helpers out."""

from __future__ import annotations

from dataclasses import dataclass

from tile_core.expr import Expr
from tile_core.program import Invoke, Place, Stmt

COUNTED = 63  # S_WAITCNT of gfx9 has six bits for vmcnt


@dataclass(frozen=True)
class LdsCopies:
    """Loads to the LDS. The wave writes one piece after the other from one address on; vmcnt counts the instructions.

    ``buffers``: only buffer loads can do it (gfx90a). Sizes: 4 bytes, on gfx950 also 16.
    """

    run: int
    buffers: bool
    sizes: tuple[int, ...] = (4,)

    def copy(self, size: int, to: Place, source: Place, taken: Expr | None) -> Stmt:
        name = f"lds_{'buffer_' if self.buffers else ''}copy_{size}"
        if taken is None:
            return Invoke(name, (to, source))
        return Invoke(f"{name}_if", (to, source, taken))

    def commit(self) -> Stmt | None:
        return None

    def wait(self, left: int) -> Stmt:
        """Ordinary loads in flight count as well: they only make it wait for more."""
        return Invoke(f"copies_wait<{min(left, COUNTED)}>")
