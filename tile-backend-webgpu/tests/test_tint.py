"""Tint, the compiler of WGSL in Chromium, takes all that is generated: each case of the kit and each example, for each target."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tile_core as tile
from tile_backend_webgpu.compiler.tint import Shader, findings
from tile_backend_webgpu.targets import TARGETS
from tile_core.errors import InternalError, Unsupported
from tile_core.hardware import TargetInfo
from tile_core.registry import registry
from tile_core.testing import requires, stages
from tile_core.testing.kernels import CASES, Case

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "device"))

from example_cases import basic

SIZES: dict[str, dict[str, Any]] = {  # where the sizes of the example do not fit in 16 KB
    "attention": {"batch": 1, "heads": 2, "seq_q": 128, "seq_kv": 128, "dim": 64, "block_M": 32, "block_N": 16},
}  # fmt: skip
TINY = next(info for info in TARGETS if info.target.arch == "default")
LARGE_CASES = {"gemm-bfloat16-nt-128-rows", "gemm-bfloat16-nn-128-rows", "attention-float16-64-rows"}

DIVERGENT = """
@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) {
  if (i < 32u) { workgroupBarrier(); }
}
"""
TOO_MUCH = """
var<workgroup> tile: array<f32, 16384>;
@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) { tile[i] = 0.0f; }
"""


def kernels() -> Iterator[tuple[str, Any]]:
    """Each basic example at its own sizes."""
    for name in basic():
        module = import_module(name)
        for kernel, sizes in getattr(module, "EXAMPLE", {}).items():
            yield kernel, getattr(module, kernel)(**{**sizes, **SIZES.get(kernel, {})})
        if name == "vector_add":
            zeros = np.zeros(1000, np.float32)
            yield "add", module.add.kernel((zeros, zeros), {})[0]


def errors(shaders: list[Shader]) -> dict[str, tuple[str, ...]]:
    return {name: found for name, found in findings(shaders).items() if found}


@pytest.mark.parametrize("info", TARGETS, ids=lambda info: info.target.arch)
def test_cases(node: str, info: TargetInfo):
    backend = registry().get("webgpu")
    shaders: list[Shader] = []
    for case in CASES:
        if not requires.unfit(case, info) and not (info is TINY and str(case) in LARGE_CASES):
            text = stages.emit(case, backend, info).text
            shaders.append(Shader.of(str(case), text, info))
    assert len(shaders) > 50
    assert errors(shaders) == {}


@pytest.mark.parametrize("info", TARGETS, ids=lambda info: info.target.arch)
def test_examples(node: str, info: TargetInfo):
    shaders: list[Shader] = []
    for name, kernel in kernels():
        shaders.append(Shader.of(name, kernel.for_target(info.target).entry.source.text, info))
    assert len(shaders) >= 10
    assert errors(shaders) == {}


@pytest.mark.parametrize("case", [c for c in CASES if str(c) in LARGE_CASES], ids=str)
def test_cases_that_do_not_fit(case: Case):
    """What the default limits have no room for is refused before any text is written."""
    with pytest.raises(Unsupported, match="bytes of workgroup memory, webgpu:default grants 16384") as found:
        stages.emit(case, registry().get("webgpu"), TINY)
    assert "webgpu:lavapipe" in found.value.help


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (DIVERGENT, "uniform control flow"),
        (TOO_MUCH, "workgroup"),
        ("fn f() -> i32 { return 1u; }", "return"),
        ("enable f16;", "f16"),
    ],
)
def test_it_refuses(node: str, code: str, words: str):
    """The gate is strict: what another front end lets pass is found."""
    (found,) = findings([Shader.of("wrong", code, TINY)]).values()
    assert any(words in text for text in found)


def test_option_of_the_compiler(node: str):
    compiler = registry().get("webgpu").compiler(TINY)
    with tile.target("webgpu:default,check=tint"):
        kernel = dict(kernels())["softmax"].compiled()
    source = kernel.for_target(TINY.target).entry.source
    assert compiler.compile(source, {"check": "tint"}).data == source.text.encode()
    with pytest.raises(Unsupported, match="none, tint"):
        compiler.compile(source, {"check": "naga"})


def test_text_that_is_refused_is_our_fault(node: str):
    source = dict(kernels())["softmax"].for_target(TINY.target).entry.source
    broken = replace(source, text=DIVERGENT)
    with pytest.raises(InternalError, match="Tint does not take"):
        registry().get("webgpu").compiler(TINY).compile(broken, {"check": "tint"})
