"""Asynchronous copies of a wave for the lowering: places in, calls of ``lds_copy`` helpers out."""

from __future__ import annotations

from dataclasses import dataclass

from tile_core.errors import InternalError
from tile_core.expr import Expr
from tile_core.program import Invoke, Place, Stmt

REACH = 2**31  # bytes before and behind the first lane's place
COUNTED = 63  # S_WAITCNT of gfx9 has six bits for vmcnt


@dataclass(frozen=True)
class LdsCopies:
    """Loads to the LDS. The wave writes one piece after the other from one address on; vmcnt counts the instructions.

    ``buffers``: only buffer loads can do it (gfx90a), whose offsets reach 2 GiB from the first lane's; whether they do is checked
    in the kernel where the tensor may be larger. Sizes: 4 bytes, on gfx950 also 16.
    """

    run: int
    buffers: bool
    sizes: tuple[int, ...] = (4,)

    def copy(self, size: int, to: Place, source: Place, taken: Expr | None) -> Stmt:
        name = f"lds_{'buffer_' if self.buffers else ''}copy_{size}"
        suffix = "_checked" if self.buffers and not _near(source) else ""
        if taken is None:
            return Invoke(f"{name}{suffix}", (to, source))
        return Invoke(f"{name}_if{suffix}", (to, source, taken))

    def commit(self) -> Stmt:
        raise InternalError("every load to the LDS is counted by itself")

    def wait(self, left: int) -> Stmt:
        """Ordinary loads in flight count as well: they only make it wait for more."""
        return Invoke(f"copies_wait<{min(left, COUNTED)}>")


def _near(source: Place) -> bool:
    """Whether the whole tensor surely lies within reach of each of its places."""
    size = source.buffer.dtype.bytes
    for extent, stride in zip(source.buffer.shape, source.buffer.row_major_strides(), strict=True):
        if not isinstance(extent, int) or not isinstance(stride, int):
            return False
        size += (extent - 1) * stride * source.buffer.dtype.bytes
    return size < REACH
