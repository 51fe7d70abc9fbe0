"""The compiler of the target has nothing to say about examples at usual sizes: no spill, no product made to wait for another."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

from tile_core.hardware import Target

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

SIZES: tuple[tuple[str, tuple[Any, ...], dict[str, Any]], ...] = (
    ("mamba_chunk_scan:chunk_scan", (8, 4096, 80, 1, 256, 64, 128), {}),
    ("mamba_chunk_scan:chunk_scan", (8, 4096, 80, 1, 256, 64, 128), {"block_M": 128, "threads": 256}),
    ("mamba_chunk_state:chunk_state", (8, 4096, 80, 1, 256, 64, 128), {}),
    ("linear_attention:linear_attention", (8, 32, 4096, 128, 128), {}),
    ("retention:retention", (8, 32, 4096, 64, 64), {}),
    ("retention:retention", (8, 32, 4096, 128, 128), {}),
    ("gated_delta_solve:solve", (1, 32, 8192, 128, 128), {}),
    ("gated_delta_state:states", (1, 32, 8192, 128, 128), {}),
    ("gated_delta_out:outputs", (1, 32, 8192, 128, 128), {}),
    ("flash_attention:attention", (8, 32, 4096, 4096, 128), {"causal": True}),
)


@pytest.mark.parametrize(
    ("kernel", "arguments", "keywords"),
    SIZES,
    ids=lambda x: x if isinstance(x, str) else "x".join(map(str, x)),
)
def test_none(kernel: str, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> None:
    module, _, function = kernel.partition(":")
    made = getattr(importlib.import_module(module), function)(*arguments, **keywords)
    assert made.for_target(Target.parse("cuda:sm_90a")).entry.artifact.findings == ()
