"""Runs CUDA source under the machine emulator: a kernel's text and numpy arguments in, a report out."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tile_core.backend import Source
from tile_core.dtypes import dtype
from tile_core.errors import TileError
from tile_core.runtime.binding import evaluate
from tile_core.testing import machine

from .table import MARK, host_prelude
from .tensor_map import TensorMap

MACHINE = Path(__file__).parent / "machine"
_ALIGN = r"(?:(?:__align__|alignas)\((?P<align>\d+)\)\s*)?"
_NAMED = r"(?P<type>[\w ]+?)\s+(?P<name>\w+)\s*"
_DYNAMIC = re.compile(
    rf"(?:(?:__align__|alignas)\(\d+\)\s*)?extern\s+__shared__\s+{_ALIGN}{_NAMED}\[\s*\]\s*;"
)
_STATIC = re.compile(rf"__shared__\s+{_ALIGN}{_NAMED}(?P<sizes>(?:\[[^\]]*\]\s*)*);")
# single instructions that a source spells itself: what they compute
_ASM = re.compile(
    r'asm(?:\s+volatile)?\("(?P<name>[\w.]+) %0, %1;"\s*:\s*"=\w"\((?P<out>[^()]+)\)\s*:\s*"\w"\((?P<in>[^()]+)\)\);'
)
INSTRUCTIONS = {
    "cvt.f32.f16": "cuda::half_to_float",
    "cvt.rn.f16.f32": "cuda::float_to_half",
    "cvt.rn.bf16.f32": "cuda::float_to_brain",
    "rcp.approx.ftz.f32": "1.0f / ",
    "ex2.approx.ftz.f32": "exp2f",
}


def kernel_of(text: str) -> str:
    """The kernel's text of a ``source``."""
    return text.split(MARK, 1)[-1]


def for_host(kernel: str) -> str:
    """The text with ``__shared__`` declarations turned into places in the machine's shared memory; lines stay."""
    kernel = _ASM.sub(_computed, kernel)
    kernel = _DYNAMIC.sub(
        lambda m: f"{m['type']}* {m['name']} = ({m['type']}*)machine::shared_dynamic();", kernel
    )
    number = 0

    def static(m: re.Match[str]) -> str:
        nonlocal number
        number += 1
        kind = f"{m['name']}_type_"
        place = f"machine::shared_static({number}, sizeof({kind}), {m['align'] or f'alignof({kind})'})"
        return f"typedef {m['type']} {kind}{m['sizes']}; {kind}& {m['name']} = *({kind}*){place};"

    return _STATIC.sub(static, kernel)


def _computed(m: re.Match[str]) -> str:
    host = INSTRUCTIONS.get(m["name"])
    return f"{m['out']} = {host}({m['in']});" if host else m[0]


def run(text: str, entry: str, arguments: Sequence[Any], **launch: Any) -> machine.Report:
    """``machine.run`` for CUDA: ``text`` is a kernel's text or a whole ``source``; ``launch`` as there."""
    kernel = for_host(kernel_of(text))
    prelude = machine.Prelude(
        host_prelude(kernel), tuple(sorted(MACHINE.glob("*.cpp"))), (MACHINE,), subgroup=32
    )
    return machine.run(kernel, prelude, entry, arguments, **launch)


class CudaEmulator:
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
        def maps(values: Mapping[str, Any]) -> Mapping[str, Any]:
            return {
                row["name"]: _map(row, values, dims) for row in source.launch.extra.get("tensor_maps", ())
            }

        return machine.run_source(source, run, arguments, dims, maps, mode=mode, seed=seed, timeout=timeout)


def _map(row: Mapping[str, Any], values: Mapping[str, Any], dims: Mapping[str, int]) -> machine.Packed | int:
    """A row of ``LaunchSpec.extra["tensor_maps"]``; 0 where the tensor has none, and the launch that wants it must not run."""
    try:
        return TensorMap(
            _seen(row, values[row["of"]], dims),
            tuple(reversed(row["box"])),
            row.get("swizzle", 0),
            name=row["name"],
        ).packed()
    except TileError:
        return 0


def _seen(row: Mapping[str, Any], tensor: Any, dims: Mapping[str, int]) -> Any:
    """A tensor, or a workspace's bytes, as its map sees it."""
    if not row["of"].startswith("workspace") or tensor.dtype != np.uint8 or tensor.ndim != 1:
        return tensor
    shape = [evaluate(d, dims) for d in reversed(row["dims"])]
    return tensor.view(dtype(row["dtype"]).as_numpy()).reshape(shape)
