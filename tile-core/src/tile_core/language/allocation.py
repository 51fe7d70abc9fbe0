"""Tiles and scalars of a kernel, and views of them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from ..dtypes import dtype as _dtype
from ..errors import KernelError
from ..expr import Buffer, Space, Var, cast, dim, shape_text
from ..program import Store
from .builder import current
from .several import is_several, several
from .tiles import Tile

SCOPES = {
    "shared": Space.SHARED,
    "shared.dyn": Space.SHARED,
    "local.fragment": Space.FRAGMENT,
    "local": Space.LOCAL,
    "local.var": Space.VAR,
    "global": Space.GLOBAL,
}


def _tile(shape: Any, dtype: Any, scope: str, allowed: Sequence[str], default: str) -> Any:
    if scope not in allowed:
        raise KernelError(f"{default} lives in {allowed[0]!r}, not in {scope!r}")
    sizes = several(shape)
    if any(not isinstance(d, int) for d in (dim(d) for d in sizes)):
        raise KernelError(
            f"the shape {shape_text(sizes)} of an on-chip tile is not known while the kernel is built",
            why="registers and shared memory are allotted before the kernel runs",
            help="use a number, and T.ceildiv tiles of it in a loop",
        )
    return current().alloc(sizes, dtype, SCOPES[scope], default)


def alloc_shared(shape: Any, dtype: Any, scope: str = "shared.dyn") -> Any:
    """A tile in shared memory, seen by all threads of the block. Its contents are unknown until written.

    Raises:
        KernelError: an extent that is not a known number, or an unknown type.
    """
    return _tile(shape, dtype, scope, ("shared.dyn", "shared"), "shared")


def alloc_fragment(shape: Any, dtype: Any, scope: str = "local.fragment") -> Any:
    """A tile spread over the registers of the block's threads; which thread holds what is inferred."""
    return _tile(shape, dtype, scope, ("local.fragment",), "fragment")


def alloc_local(shape: Any, dtype: Any, scope: str = "local") -> Any:
    """A private array of each thread."""
    return _tile(shape, dtype, scope, ("local",), "local")


def alloc_var(dtype: Any, init: Any = None, scope: str = "local.var") -> Any:
    """A private, mutable scalar of each thread: ``v = T.alloc_var("int32", 0)``; then ``v = v + 1`` stores."""
    if scope != "local.var":
        raise KernelError(f"a scalar lives in 'local.var', not in {scope!r}")
    b = current()
    cell = b.alloc((), dtype, Space.VAR, "var")
    if init is not None:
        b.emit(Store(cell.buffer, (), cast(init, cell.dtype)))
    return cell


def alloc_global(shape: Any, dtype: Any) -> Any:
    """A workspace in global memory, made by the launcher at each call; it may have symbolic extents.

    Raises:
        KernelError: inside ``T.Kernel``: a workspace belongs to the whole grid.
    """
    b = current()
    if b.launch is not None:
        raise KernelError("T.alloc_global stands inside T.Kernel", help="move it before the T.Kernel block")
    return b.alloc(several(shape), dtype, Space.GLOBAL, "workspace")


def empty(*shape: Any, dtype: Any = "float32") -> Any:
    """An output of an eager kernel: allocated by the runtime like the caller's tensors, and returned by ``return``.

    ``T.empty((M, N), T.float16)`` or ``T.empty(M, N, dtype=T.float16)``.
    """
    b = current()
    sizes: tuple[Any, ...] = shape
    if shape and is_several(shape[0]):
        sizes = tuple(shape[0])
        dtype = shape[1] if len(shape) > 1 else dtype
    declare = getattr(b, "output", None)
    if declare is None:
        raise KernelError(
            "T.empty is for eager kernels",
            help="in a T.prim_func give the output as a parameter and name it in out_idx",
        )
    return declare(sizes, _dtype(dtype))


def const(names: str, dtype: Any = "int32") -> Any:
    """Dimensions of an eager kernel, solved from the shapes of the tensors passed: ``M, N = T.const("M, N")``."""
    b = current()
    solve = getattr(b, "constants", None)
    if solve is None:
        raise KernelError(
            "T.const is for eager kernels", help="in a T.prim_func use its Python arguments, or T.dynamic"
        )
    return solve(names, _dtype(dtype))


def make_tensor(ptr: Any, shape: Any, dtype: Any = "float32", strides: Any = None) -> Any:
    """A tensor over a pointer parameter (``T.ptr``): no bounds of the memory behind it are known to tile.

    Where it is written, it is the only tensor over the pointer in its launch; others are views of it (``T.view``).

    Raises:
        KernelError: ``ptr`` is not a pointer.
    """
    b = current()
    if not isinstance(ptr, Var) or ptr.dtype.kind != "handle":
        raise KernelError("T.make_tensor needs a T.ptr parameter")
    name = b.take_hint(ptr.name)
    sizes = tuple(dim(d) for d in several(shape))
    steps = None if strides is None else tuple(dim(d) for d in several(strides))
    buffer = Buffer(name, sizes, _dtype(dtype), Space.GLOBAL, steps, b.unique(name), base=ptr, span=b.span())
    return Tile(buffer)


def reshape(src: Any, shape: Any) -> Any:
    """The same memory with another shape of as many elements, in row-major order.

    Raises:
        KernelError: the number of elements differs, or the tile is not contiguous.
    """
    return view(src, shape, src.dtype)


def view(src: Any, shape: Any = None, dtype: Any = None, strides: Any = None) -> Any:
    """The same memory read with another shape, type or strides; the number of bits must be the same.

    Raises:
        KernelError: the bits differ, or ``src`` is not a whole contiguous tile.
    """
    b = current()
    if not isinstance(src, Tile):
        raise KernelError("T.view takes a whole tile or tensor")
    buffer = src.buffer
    type = buffer.dtype if dtype is None else _dtype(dtype)
    sizes = several(buffer.shape if shape is None else shape)
    if buffer.strides is not None:
        raise KernelError(f"{buffer.name} has strides of its own: a view needs a contiguous tile")
    old, new = buffer.static_shape, tuple(dim(d) for d in sizes)
    if old is not None and all(isinstance(d, int) for d in new):
        have, want = prod(old) * buffer.dtype.bits, prod(new) * type.bits
        if have != want:
            raise KernelError(
                f"a view of {buffer.name} as {shape_text(new)} {type} has {want} bits, the tile has {have}",
                why="a view shares storage: it neither cuts nor grows it",
            )
    steps = None if strides is None else tuple(dim(d) for d in several(strides))
    if steps is not None:
        _inside(buffer, new, steps)
    name = b.take_hint(f"{buffer.name}_view")
    out = Buffer(name, new, type, buffer.space, steps, b.unique(name), source=buffer, span=b.span())
    return Tile(out)


def _inside(buffer: Buffer, shape: tuple[Any, ...], strides: tuple[Any, ...]) -> None:
    """Raise ``KernelError`` if a view with these strides reaches outside of the tile."""
    if len(strides) != len(shape):
        raise KernelError(f"{len(strides)} strides for {len(shape)} dimensions of a view of {buffer.name}")
    known = [(n, s) for n, s in zip(shape, strides, strict=True) if isinstance(n, int) and isinstance(s, int)]
    last = sum((n - 1) * s for n, s in known)
    size = prod(n for n in shape if isinstance(n, int))
    if any(s < 0 for _, s in known) or (len(known) == len(shape) and size and last >= size):
        raise KernelError(
            f"a view of {buffer.name} with strides {strides} reaches element {last}, the view has {size}",
            why="a view stays inside its tile",
        )


__all__ = [
    "alloc_fragment",
    "alloc_global",
    "alloc_local",
    "alloc_shared",
    "alloc_var",
    "const",
    "empty",
    "make_tensor",
    "reshape",
    "view",
]
