"""Whether a backend's devices can reach the tensors of a call."""

from __future__ import annotations

from ..backend import Backend
from ..errors import ArgumentError
from ..select import HOST, TensorDevice


def reachable(backend: Backend, where: TensorDevice | None) -> None:
    """Raise ``ArgumentError`` if the backend cannot reach tensors that live ``where``."""
    if where is None or where.torch in backend.torch_devices or where.dlpack in backend.dlpack_devices:
        return
    if backend.host_tensors and where == HOST:
        return
    if backend.torch_devices or backend.dlpack_devices:
        own = ", ".join(dict.fromkeys(f"{name!r}" for name, _ in backend.torch_devices))
        raise ArgumentError(
            f"the tensors are on {where}, a kernel for {backend.name} cannot reach them",
            help=f"move them to device {own}, or choose another target",
        )
    if not where.on_host:
        raise ArgumentError(
            f"the tensors are on {where}, a kernel for {backend.name} takes those of the host",
            help="move them to device 'cpu', or choose another target",
        )
