"""A whole call without a device: a kernel's source for one target under its backend's emulator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..dtypes import dtype
from ..errors import KernelError
from ..runtime.binding import evaluate
from ..runtime.targeted import TargetKernel


def emulated(
    kernel: TargetKernel, given: Sequence[Any], dims: Mapping[str, int], mode: str = "early"
) -> tuple[Any, ...]:
    """The outputs that a call would allocate; of ``given`` what the kernel writes changes in place.

    ``given``: arrays and numbers in the order of the signature, without the outputs. ``dims``: of symbolic dimensions.
    ``mode``: when asynchronous operations take place, ``early``, ``late`` or ``random``.

    Raises:
        KernelError: the emulator found something wrong: a race, a missing wait, an access out of bounds.
        Unsupported: the backend has no emulator.
    """
    emulator, source = kernel.backend.emulator(kernel.info), kernel.source
    rest = iter(given)
    arguments = [
        np.zeros([evaluate(d, dims) for d in p.shape], dtype(p.dtype).as_numpy())
        if n in source.launch.outputs
        else next(rest)
        for n, p in enumerate(p for p in source.launch.params if p.kind != "dim")
    ]
    for report in emulator.run(source, arguments, dims, mode=mode):
        if not report.clean:
            raise KernelError(f"the source of {kernel.request.name} for {kernel.target} goes wrong: {report}")
    return tuple(arguments[n] for n in source.launch.outputs)
