"""The files of a page: ``index.html``, which works by itself, and ``tile.js`` with ``kernel.json`` for pages of one's own."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from importlib.resources import files
from math import prod
from typing import Any

from tile_core.backend import Artifact, LaunchSpec, Source

from .expressions import tree

FORMAT = 1


def page(name: str, source: Source, artifact: Artifact) -> Mapping[str, bytes]:
    """The files by name."""
    here = files(__package__ or "")
    data = json.dumps(described(name, source, artifact))
    loader = here.joinpath("tile.js").read_text("utf8")
    # a script ends at the first </script, whatever language it is in
    values = {"@NAME@": html.escape(name), "@LOADER@": loader, "@DATA@": data.replace("</", "<\\/")}
    text = here.joinpath("index.html").read_text("utf8")
    for key, value in values.items():
        text = text.replace(key, value)
    written = {"index.html": text, "tile.js": loader, "kernel.json": data, f"{name}.wgsl": source.text}
    return {file: content.encode() for file, content in written.items()}


def described(name: str, source: Source, artifact: Artifact) -> dict[str, Any]:
    """What the loader must know: the code, its parameters and launches."""
    launch, extra = source.launch, source.launch.extra
    return {
        "format": FORMAT,
        "name": name,
        "code": artifact.data.decode("utf8"),
        "features": list(extra["features"]),
        "subgroup": extra["subgroup"],
        "limits": _limits(launch, artifact),
        "params": [
            {
                "name": p.name,
                "kind": p.kind,
                "dtype": p.dtype,
                "shape": [tree(d) for d in p.shape],
                "strides": [tree(d) for d in p.strides],
                "written": p.written,
                "output": n in launch.outputs,
            }
            for n, p in enumerate(launch.params)
        ],
        "uniforms": [kind for _, kind in extra["uniforms"]],
        "workspaces": [{"shape": [tree(d) for d in shape], "bytes": size} for shape, size in extra["workspaces"]],
        "entries": [
            {"name": entry, "grid": [tree(g) for g in grid], "bindings": [list(row) for row in extra["bindings"][entry]]}
            for entry, grid, _ in launch.entries
        ],
    }  # fmt: skip


def _limits(launch: LaunchSpec, artifact: Artifact) -> dict[str, int]:
    """What the kernel needs, as WebGPU names it; a device is asked for no more."""
    threads = max(prod(threads) for _, _, threads in launch.entries)
    return {
        "maxComputeWorkgroupStorageSize": artifact.resources["workgroup_bytes"],
        "maxComputeInvocationsPerWorkgroup": threads,
        "maxComputeWorkgroupSizeX": threads,
        "maxStorageBuffersPerShaderStage": max(len(rows) for rows in launch.extra["bindings"].values()),
    }
