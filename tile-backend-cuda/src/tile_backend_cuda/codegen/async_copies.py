"""Asynchronous copies of a thread for the lowering: places in, calls of ``cp_async`` helpers out."""

from __future__ import annotations

from dataclasses import dataclass

from tile_core.expr import Expr
from tile_core.program import Invoke, Place, Stmt


@dataclass(frozen=True)
class CpAsync:
    """``cp.async``. Sizes: PTX ISA, cp.async, cp-size; 16 bytes may pass by L1."""

    sizes: tuple[int, ...] = (16, 8, 4)
    run: int = 1

    def copy(self, size: int, to: Place, source: Place, taken: Expr | None) -> Stmt:
        name = f"cp_async_{size}" + ("_cg" if size == 16 else "")
        if taken is None:
            return Invoke(name, (to, source))
        return Invoke(f"{name}_zfill", (to, source, taken))

    def commit(self) -> Stmt:
        return Invoke("cp_async_commit")

    def wait(self, left: int) -> Stmt:
        return Invoke(f"cp_async_wait<{left}>")
