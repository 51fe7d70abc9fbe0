"""Which target a call is for.

Argument > ``with target(...)`` > ``TILE_TARGET`` > the tensors' device > the only backend with a device > ``cpu``.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from . import settings
from .backend import Backend
from .errors import BackendNotFound
from .hardware import Device, Target
from .registry import Registry, registry

EMBEDDED = "cpu"


@dataclass(frozen=True, slots=True)
class TensorDevice:
    """Where a tensor lives, in the words of its library. Either may be missing.

    ``torch``: torch's device type and whether this torch is a HIP build. ``dlpack``: the DLDeviceType. ``index``: which one.
    """

    torch: tuple[str, bool] | None = None
    dlpack: int | None = None
    index: int = 0

    @property
    def on_host(self) -> bool:
        """Whether a process reads it at its address."""
        return self == HOST or (self.torch is not None and self.torch[0] == "cpu")

    def __str__(self) -> str:
        if self == HOST:
            return "the host"
        if self.torch is None:
            return f"DLPack device {self.dlpack}:{self.index}"
        return f"torch device {self.torch[0]}:{self.index}" + (" (HIP)" if self.torch[1] else "")


# numpy's arrays, and DLPack's kDLCPU (dlpack.h)
HOST = TensorDevice(dlpack=1)


@contextmanager
def target(text: str | Target) -> Generator[Target, None, None]:
    """Compile for another target inside a ``with`` block. Raises ``KernelError`` if the text is no target."""
    chosen = text if isinstance(text, Target) else Target.parse(text)
    with settings.scope(target=str(chosen)):
        yield chosen


def choose(
    argument: str | Target | None = None,
    tensors: TensorDevice | None = None,
    backends: Registry | None = None,
) -> Target:
    """The target of a call, with its architecture: of the device that would run it, else the backend's default.

    Probes devices, so a caller on a warm path remembers the answer for equal arguments.

    Raises:
        BackendError: the backend that was asked for, or one for these tensors, cannot be used.
        Unsupported: it has no such architecture.
    """
    known = backends or registry()
    if asked := argument or settings.current().target:
        wanted = asked if isinstance(asked, Target) else Target.parse(asked)
        return complete(wanted, known.get(wanted.backend), tensors.index if tensors else 0)
    if tensors is not None:
        holder = holding(tensors, known)
        return complete(Target(holder.name), holder, tensors.index)
    if only := _only_with_device(known):
        return complete(Target(only.name), only)
    return complete(Target(EMBEDDED), known.get(EMBEDDED))


def complete(wanted: Target, backend: Backend, index: int = 0) -> Target:
    """``wanted`` with an architecture: its own, that of the device, or the backend's default. Raises ``Unsupported``."""
    found = wanted.arch or _arch_of(backend.devices(), index)
    info = backend.info(Target(wanted.backend, found, wanted.options))
    return Target(wanted.backend, info.target.arch, wanted.options)


def holding(tensors: TensorDevice, known: Registry) -> Backend:
    """The preferred backend whose devices hold such tensors. Raises ``BackendNotFound``.

    Tensors in the host's memory are the embedded backend's: no other is loaded for them.
    """
    fitting: list[Backend] = []
    for backend in known.usable():
        if tensors.torch in backend.torch_devices or tensors.dlpack in backend.dlpack_devices:
            fitting.append(backend)
            if known.embedded(backend.name):
                break
    if fitting:
        return _preferred(fitting)
    raise BackendNotFound(
        f"no backend here takes tensors on {tensors}",
        why="; ".join(f"{s.name}: {s.state}" for s in known.statuses()),
        help="install the backend of that device, or name a target; `tile targets` says more",
    )


def _only_with_device(known: Registry) -> Backend | None:
    """The one backend that has a device; of several for the same tensors the preferred one.

    Embedded backends, and those that declare no tensors of their own, are chosen by name alone.
    """
    declared = [
        b for b in known.usable() if (b.torch_devices or b.dlpack_devices) and not known.embedded(b.name)
    ]
    live = [b for b in declared if _has_device(b)]
    chosen = {best.name: best for b in live for best in [_preferred([o for o in live if _rivals(b, o)])]}
    return next(iter(chosen.values())) if len(chosen) == 1 else None


def _rivals(a: Backend, b: Backend) -> bool:
    return a is b or bool({*a.torch_devices, *a.dlpack_devices} & {*b.torch_devices, *b.dlpack_devices})


def _preferred(backends: Sequence[Backend]) -> Backend:
    return max(backends, key=lambda b: b.preference)


def _has_device(backend: Backend) -> bool:
    try:
        return bool(backend.devices())
    except Exception:  # nobody asked for this backend: `tile targets` shows what is wrong with it
        return False


def _arch_of(devices: Sequence[Device], index: int) -> str:
    return next((d.target.arch for d in devices if d.index == index), "")
