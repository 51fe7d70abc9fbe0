"""``tile run``: run a kernel on random tensors and compare every output with the interpreter's."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import KernelError
from .options import dim_values, dims, kernel
from .tables import show

if TYPE_CHECKING:
    from ..runtime import Kernel


def arguments(parser: argparse.ArgumentParser) -> None:
    kernel(parser)
    dims(parser)
    parser.add_argument("--seed", type=int, default=0, help="of the random tensors")
    parser.add_argument(
        "--emulated", action="store_true", help="no device: run the source under the backend's emulator"
    )
    parser.add_argument(
        "--tolerance", type=float, default=2e-2, help="largest error relative to the largest value"
    )


def run(options: argparse.Namespace) -> int:
    """Exit status 1 if an output differs from the interpreter's by more than the tolerance."""
    from ..runtime import Kernel
    from .loading import load
    from .samples import tensors

    found = load(options)
    launch = found.launch
    given = tensors(launch, dim_values(options), options.seed)
    expected = [g.copy() if hasattr(g, "copy") else g for g in given]
    begin = time.perf_counter()
    outputs = emulated(found, given, dim_values(options)) if options.emulated else _all(found(*given))
    elapsed = (time.perf_counter() - begin) * 1e3
    reference = _all(Kernel(found.request, "interpreter")(*expected))
    names = [p.name for p in launch.params if p.kind != "dim"]
    inputs = [n for i, n in enumerate(names) if i not in launch.outputs]
    pairs = [(names[n], a, b) for n, a, b in zip(launch.outputs, outputs, reference, strict=True)]
    written = {p.name for p in launch.params if p.written}
    pairs += [(n, a, b) for n, a, b in zip(inputs, given, expected, strict=True) if n in written]
    rows = [_row(name, a, b, options.tolerance) for name, a, b in pairs]
    show(rows, as_json=options.json, title=f"{found.name} on {found.target}, {elapsed:.2f} ms")
    return int(any(not r["agrees"] for r in rows))


def emulated(kernel: Kernel, given: Sequence[Any], dims: Mapping[str, int]) -> tuple[Any, ...]:
    """The outputs of a kernel's source under its backend's emulator; what it writes of ``given`` changes in place.

    Raises:
        KernelError: the emulator found something wrong: a race, a missing wait, an access out of bounds.
        Unsupported: the backend has no emulator.
    """
    import numpy as np

    from ..dtypes import dtype
    from ..runtime.binding import evaluate

    emulator, source = kernel.backend.emulator(kernel.info), kernel.on(None).source
    rest = iter(given)
    arguments = [
        np.zeros([evaluate(d, dims) for d in p.shape], dtype(p.dtype).as_numpy())
        if n in source.launch.outputs
        else next(rest)
        for n, p in enumerate(p for p in source.launch.params if p.kind != "dim")
    ]
    for report in emulator.run(source, arguments, dims):
        if not report.clean:
            raise KernelError(f"the source of {kernel.name} for {kernel.target} goes wrong: {report}")
    return tuple(arguments[n] for n in source.launch.outputs)


def _all(outputs: Any) -> tuple[Any, ...]:
    match outputs:
        case None:
            return ()
        case (*several,):
            return tuple(several)
        case one:
            return (one,)


def _row(name: str, got: Any, want: Any, tolerance: float) -> dict[str, Any]:
    import numpy as np

    a, b = np.asarray(got).astype(np.float64), np.asarray(want).astype(np.float64)
    both = np.isfinite(a) & np.isfinite(b)
    error = float(np.abs(a - b)[both].max()) if both.any() else 0.0
    scale = float(np.abs(b[both]).max()) if both.any() else 0.0
    same_rest = bool(np.array_equal(a[~both], b[~both], equal_nan=True))
    agrees = same_rest and error <= tolerance * max(scale, 1e-30)
    return {"output": name, "shape": list(a.shape), "largest": scale, "error": error, "agrees": agrees}
