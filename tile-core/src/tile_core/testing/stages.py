"""A case through the stages of the compiler, one at a time, for one backend: plan, source, artifact, launch."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from ..backend import Artifact, Backend, LaunchSpec, Source, TensorKernel
from ..errors import Unsupported
from ..hardware import Device, TargetInfo
from ..inference.plan import TilePlan
from ..program import TileProgram
from ..runtime import pipeline
from ..runtime.binding import evaluate
from .arguments import is_array
from .kernels import Case

R = TypeVar("R")


def role(make: Callable[[], R]) -> R | str:
    """What ``make`` gives, or the reason why this backend has no such role."""
    try:
        return make()
    except Unsupported as error:
        return error.message


def plan(program: TileProgram, backend: Backend, info: TargetInfo) -> TilePlan:
    """The plan of a program as the backend takes it. Raises ``Unsupported`` if it cannot run it."""
    return pipeline.legalized(pipeline.make_plan(program, info), backend)


def emit(case: Case, backend: Backend, info: TargetInfo) -> Source:
    """The source of a case, from a program that is built anew."""
    return backend.codegen(info).emit(plan(case.make().program, backend, info))


def compiled(case: Case, backend: Backend, info: TargetInfo) -> tuple[Artifact, LaunchSpec]:
    source = emit(case, backend, info)
    return backend.compiler(info).compile(source, {}), source.launch


def launch(case: Case, backend: Backend, device: Device, arguments: Sequence[Any]) -> list[Any]:
    """Run a case on a device; gives the arrays as they are after it. ``arguments`` are left as they were."""
    info = backend.info(device.target)
    artifact, spec = compiled(case, backend, info)
    launcher = backend.launcher(device)
    kernel = launcher.load(artifact, spec)
    held = [_upload(a, device) for a in arguments]
    dims = [case.dims[p.name] for p in spec.params[len(case.program.params) :]]
    grids = [tuple(evaluate(e, case.dims) for e in grid) for _, grid, _ in spec.entries]
    given = held if isinstance(kernel, TensorKernel) else [_pointer(a) for a in held]
    kernel([*given, *dims], grids)
    launcher.synchronize()
    return [_download(a, like) for a, like in zip(held, arguments, strict=True)]


def _upload(value: Any, device: Device) -> Any:
    """A copy of an array in the device's memory: numpy's for a device without a torch name, else torch's."""
    if not is_array(value):
        return value
    if device.torch in ("", "cpu"):
        return np.copy(value)
    torch = importlib.import_module("torch")
    # torch does not know ml_dtypes: bytes travel, and only the pointer counts
    return torch.from_numpy(np.copy(np.frombuffer(value.tobytes(), np.uint8))).to(device.torch)


def _download(held: Any, like: Any) -> Any:
    if not is_array(like) or is_array(held):
        return held
    return np.reshape(np.frombuffer(held.cpu().numpy().tobytes(), like.dtype), like.shape)


def _pointer(value: Any) -> Any:
    match value:
        case np.ndarray():
            return value.ctypes.data
        case int() | float():
            return value
        case _:
            return value.data_ptr()
