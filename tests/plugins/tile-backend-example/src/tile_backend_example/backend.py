"""A whole backend: facts of one target, and the four roles. A vendor's has a module for each role."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

from tile_core.backend import (
    ApiVersion,
    Artifact,
    Backend,
    LaunchSpec,
    LoadedKernel,
    Pass,
    Source,
)
from tile_core.hardware import Device, Engine, MemorySpace, Target, TargetInfo, Token
from tile_core.inference.plan import TilePlan
from tile_core.signature import launch_spec

from .text import launch_text, literal

HOST = TargetInfo(
    Target("example", "host"),
    spaces=(MemorySpace("global", 1 << 40, 16, "grid"), MemorySpace("shared", 1 << 20, 16, "block")),
    engines=(Engine("alu", "synchronous"),),
    tokens=(Token("barrier"),),
    subgroup=1,  # not SIMT: a block is one thread of control, so plans hold no thread layouts
    max_threads=1,
    dtypes=frozenset(
        {"bool", "int8", "uint8", "int32", "uint32", "int64", "float16", "bfloat16", "float32", "float64"}
    ),
    atoms=(),
    peaks={"float32": 1e9, "global": 1e9},
    cores=1,
    clock=1e9,
    sources=("none: this target is numpy",),
)


class ExampleBackend(Backend):
    name = "example"
    api = ApiVersion(1, 0)

    def targets(self) -> Sequence[TargetInfo]:
        return (HOST,)

    def devices(self) -> Sequence[Device]:
        return (Device(HOST.target, 0, "this process"),)

    def lowering(self, info: TargetInfo) -> ExampleLowering:
        return ExampleLowering()

    def codegen(self, info: TargetInfo) -> ExampleCodegen:
        return ExampleCodegen()

    def compiler(self, info: TargetInfo) -> ExampleCompiler:
        return ExampleCompiler()

    def launcher(self, device: Device) -> ExampleLauncher:
        return ExampleLauncher()


class ExampleLowering:
    def legalize(self, plan: TilePlan) -> TilePlan:
        return plan

    def passes(self) -> Sequence[Pass]:
        return ()


class ExampleCodegen:
    def emit(self, plan: TilePlan) -> Source:
        spec = launch_spec(plan.program, ["run"] * len(plan.program.launches))
        return Source(launch_text(literal(plan.program), spec.params), "python", ".py", spec)


class ExampleCompiler:
    def compile(self, source: Source, options: Mapping[str, Any]) -> Artifact:
        compile(source.text, "<example>", "exec")  # a syntax error should show here, not at the first launch
        return Artifact("python", source.text.encode())

    def fingerprint(self) -> str:
        return "python"


class ExampleLauncher:
    def load(self, artifact: Artifact, launch: LaunchSpec) -> LoadedKernel:
        scope: dict[str, Any] = {"memory": _memory}
        exec(artifact.data.decode(), scope)

        def kernel(
            arguments: Sequence[int | float], grids: Sequence[tuple[int, ...]], stream: int | None = None
        ) -> None:
            scope["run"](*arguments)

        return kernel

    def synchronize(self) -> None:
        pass

    def current_stream(self) -> int | None:
        return None


def _memory(address: int, count: int) -> Any:
    """``count`` bytes at ``address``, without a copy."""
    return (ctypes.c_char * count).from_address(address) if count else b""
