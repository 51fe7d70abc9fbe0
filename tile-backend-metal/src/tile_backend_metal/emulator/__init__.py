"""Runs MSL under the machine emulator: a source and numpy arguments in, reports out. Apple's compiler is not asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tile_core.backend import Source
from tile_core.testing import machine
from tile_core.testing.arguments import is_array

from ..compiler.lint import number
from .host_text import entry_of, for_host

HERE = Path(__file__).parent
WORD = 4


def run(
    text: str, entry: str, arguments: Sequence[Any], *, language: str = "3.1", **launch: Any
) -> machine.Report:
    """``machine.run`` for MSL: ``text`` is a whole source, ``language`` its version; ``launch`` as there."""
    prelude = machine.Prelude(
        f'#define __METAL_VERSION__ {number(language)}\n#include "metal_host.h"\n',
        tuple(sorted((HERE / "machine").glob("*.cpp"))),
        (HERE / "machine", HERE / "include"),
        subgroup=32,
    )
    return machine.run(for_host(text), prelude, entry_of(entry), arguments, **launch)


class MetalEmulator:
    """Every launch of a generated source, in order."""

    def run(
        self,
        source: Source,
        arguments: Sequence[Any],
        dims: Mapping[str, int],
        *,
        mode: str = "early",
        seed: int = 0,
        timeout: float = 120.0,
    ) -> list[machine.Report]:
        def one(text: str, entry: str, values: Sequence[Any], **launch: Any) -> machine.Report:
            return run(text, entry, values, language=source.launch.extra["language"], **launch)

        held = [_whole_words(a) for a in arguments] if "tile_atomic_" in source.text else list(arguments)
        reports = machine.run_source(source, one, held, dims, mode=mode, seed=seed, timeout=timeout)
        for given, used in zip(arguments, held, strict=True):
            if used is not given:
                given[...] = used
        return reports


def _whole_words(value: Any) -> Any:
    """An array in memory that ends with a whole word, as Metal's buffers do: an atomic of 16 bits works on the word."""
    if not is_array(value) or value.nbytes % WORD == 0:
        return value
    memory = np.zeros(-(-value.nbytes // WORD) * WORD, np.uint8)
    whole: Any = np.ndarray(value.shape, value.dtype, memory)
    whole[...] = value
    return whole
