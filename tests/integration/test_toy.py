"""A vendor's target with a matrix instruction of its own: the whole kit, emulated, and faults that must not pass."""

from __future__ import annotations

import numpy as np

from tile_core import interpreter
from tile_core.backend import Source
from tile_core.registry import registry
from tile_core.testing import arguments, stages
from tile_core.testing.conformance import *
from tile_core.testing.kernels import BY_NAME

TILE_BACKEND = "toy"


def emulated(change) -> tuple[np.ndarray, np.ndarray]:
    """The product of a changed source, and the interpreter's."""
    case, backend = BY_NAME["gemm-float16-even"], registry().get("toy")
    (info,) = backend.targets()
    source = stages.emit(case, backend, info)
    text = change(source.text)
    assert text != source.text
    made = arguments.made(case)
    wanted, got = arguments.copies(made), arguments.copies(made)
    interpreter.run(case.program, wanted)
    backend.emulator(info).run(Source(text, source.language, source.suffix, source.launch), got, case.dims)
    return got[2], wanted[2]


def test_the_instruction_does_the_work() -> None:
    got, wanted = emulated(lambda text: text.replace("toy_multiply(", "(void)sizeof("))
    assert not got.any()
    assert wanted.any()


def test_operands_have_their_places() -> None:
    got, wanted = emulated(lambda text: text.replace("&a_part[", "&b_part[", 1))
    assert not np.allclose(got, wanted, rtol=1e-2, atol=1e-1)
