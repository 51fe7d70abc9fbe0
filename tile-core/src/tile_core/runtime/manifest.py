"""Launch specifications and artifacts as JSON, and back: what the cache and bundles keep beside the code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from ..backend import Artifact, Finding, LaunchParam, LaunchSpec


def launch_row(launch: LaunchSpec) -> dict[str, Any]:
    return {
        "params": [asdict(p) for p in launch.params],
        "entries": launch.entries,
        "outputs": launch.outputs,
        "extra": dict(launch.extra),
    }


def launch_of(row: Mapping[str, Any]) -> LaunchSpec:
    """Raises ``KeyError`` or ``TypeError`` if the row is none."""
    return LaunchSpec(
        tuple(_param(p) for p in row["params"]),
        tuple((name, tuple(grid), tuple(threads)) for name, grid, threads in row["entries"]),
        tuple(row["outputs"]),
        row["extra"],
    )


def _param(row: Mapping[str, Any]) -> LaunchParam:
    fields: dict[str, Any] = {**row, "shape": tuple(row["shape"]), "strides": tuple(row["strides"])}
    return LaunchParam(**fields)


def artifact_row(artifact: Artifact) -> dict[str, Any]:
    """All of an artifact but its bytes."""
    return {
        "kind": artifact.kind,
        "log": artifact.log,
        "resources": dict(artifact.resources),
        "findings": [asdict(f) for f in artifact.findings],
    }


def artifact_of(row: Mapping[str, Any], data: bytes) -> Artifact:
    """Raises ``KeyError`` or ``TypeError`` if the row is none."""
    return Artifact(
        row["kind"], data, row["log"], row["resources"], tuple(Finding(**f) for f in row["findings"])
    )
