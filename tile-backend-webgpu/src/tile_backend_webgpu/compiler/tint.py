"""Tint, Chromium's compiler of WGSL, as a judge: takes modules, gives what is wrong. Runs in Node.js, without a GPU."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tile_core.errors import BackendError, InternalError
from tile_core.hardware import TargetInfo

from ..targets import granted
from .node import node, package

SCRIPT = Path(__file__).with_name("tint.cjs")
SECONDS = 300


@dataclass(frozen=True)
class Shader:
    """A module, and the features and limits of the device that it is for."""

    name: str
    code: str
    features: tuple[str, ...]
    limits: Mapping[str, int]

    @staticmethod
    def of(name: str, code: str, info: TargetInfo) -> Shader:
        limits = {_camel(k): v for k, v in granted(info.target).limits().items()}
        return Shader(name, code, tuple(sorted(info.features)), limits)


def findings(shaders: Sequence[Shader]) -> dict[str, tuple[str, ...]]:
    """Errors by name of the module; () where there are none.

    Raises ``BackendError`` if Node.js or its package ``webgpu`` is missing, or does not start.
    """
    rows = [
        {"name": s.name, "code": s.code, "features": s.features, "limits": dict(s.limits)} for s in shaders
    ]
    environment = {**os.environ, "NODE_PATH": str(package("webgpu").parent)}
    done = subprocess.run(
        [node(), str(SCRIPT)],
        input=json.dumps(rows),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env=environment,
        check=False,
    )
    if done.returncode:
        raise BackendError(f"Tint does not run: {done.stderr.strip()[:500]}", help="npm install webgpu")
    return {row["name"]: tuple(row["errors"]) for row in json.loads(done.stdout)}


def refuse(code: str, info: TargetInfo) -> None:
    """Raise ``InternalError`` with Tint's words if it does not take the text: code that is generated should pass."""
    errors = findings([Shader.of("kernel", code, info)])["kernel"]
    if errors:
        raise InternalError(f"Tint does not take the generated WGSL: {'; '.join(errors)[:2000]}")


def _camel(name: str) -> str:
    head, *rest = name.split("-")
    return head + "".join(w.capitalize() for w in rest)
