"""A kernel for one target: found in the cache or compiled."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from .. import settings
from ..backend import Source
from ..hardware import Target, TargetInfo
from ..inference.plan import TilePlan
from ..program import TileProgram
from .cache import Cache, Entry
from .failures import reported
from .resident import Resident


@dataclass(frozen=True)
class Request:
    """A kernel to be compiled. ``identity`` stands for the program in the cache's key; "" keeps it out of the cache.

    ``build`` makes the tile program. ``outputs`` are numbers of parameters that the runtime allocates.
    """

    name: str
    build: Callable[[], TileProgram]
    identity: str
    outputs: tuple[int, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @cached_property
    def program(self) -> TileProgram:
        """The tile program, with the outputs that the request names."""
        program = self.build()
        return replace(program, outputs=self.outputs) if self.outputs else program


class TargetKernel(Resident):
    """One request on one target. Threads may share it."""

    def __init__(self, request: Request, target: Target) -> None:
        super().__init__(target)
        self.request = request
        self.times: Mapping[str, float] = {}
        self._entry: Entry | None = None

    @cached_property
    def info(self) -> TargetInfo:
        return self.backend.info(self.target)

    @cached_property
    def plan(self) -> TilePlan:
        """What inference decided, before the backend's own changes."""
        from .pipeline import make_plan

        return make_plan(self.request.program, self.info)

    @property
    def entry(self) -> Entry:
        """The compiled kernel: from memory, from the cache on disk, or made now."""
        if self._entry is None:
            with self._lock:
                if self._entry is None:
                    self._entry = self._find_or_make()
        return self._entry

    @cached_property
    def source(self) -> Source:
        """The generated source and how it is called. Nothing is compiled for it: a target may have no toolkit here."""
        if self._entry is not None:
            return self._entry.source
        from .pipeline import legalized

        with reported(self.request.program, self.target):
            return self.backend.codegen(self.info).emit(legalized(self.plan, self.backend))

    def _find_or_make(self) -> Entry:
        cache, key = Cache(), self.key
        dumping = bool(settings.current().dumped)  # a kernel from the cache has no stages to show
        found = cache.get(key) if key and not dumping else None
        if found is not None:
            return found
        from .pipeline import compile_program

        with reported(self.request.program, self.target):
            made = compile_program(self.request.program, self.backend, self.info, self.request.options)
        self.times = made.times
        about = {"name": self.request.name, "target": str(self.target)}
        entry = Entry(made.artifact, made.source, about)
        if key:
            cache.put(key, entry)
        return entry

    @cached_property
    def key(self) -> str:
        """The key in the disk cache: identity of the kernel, target, options, and versions of all that makes code."""
        if not self.request.identity:
            return ""
        parts = {
            "kernel": self.request.identity,
            "outputs": self.request.outputs,
            "options": sorted((k, repr(v)) for k, v in self.request.options.items()),
            "target": str(self.target),
            "optimal": settings.current().optimal,
            "code": [
                package_state("tile_core"),
                package_state(type(self.backend).__module__.partition(".")[0]),
            ],
            "toolkit": self.backend.compiler(self.info).fingerprint(),
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def write_source(self) -> Path:
        """Write the source beside the cache, or to the folder for temporary files, and give the file."""
        import tempfile

        text = self.source.text
        digest = hashlib.sha256(text.encode()).hexdigest()
        name = f"{self.request.name}-{digest[:12]}{self.source.suffix}"
        for folder in (Cache().folder.parent / "sources", Path(tempfile.gettempdir())):
            try:
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                (folder / name).write_text(text, encoding="utf8")
                return folder / name
            except OSError:
                continue
        raise OSError(f"there is no folder to write {name} to; set TILE_CACHE_DIR")


@lru_cache(maxsize=16)
def package_state(package: str) -> str:
    """A digest of the names, sizes and times of an installed package's files: it changes when its code does."""
    import importlib.util

    spec = importlib.util.find_spec(package)
    digest = hashlib.sha256()
    for root in (spec.submodule_search_locations or ()) if spec else ():
        for file in sorted(Path(root).rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                status = file.stat()
                digest.update(f"{file.relative_to(root)}:{status.st_size}:{status.st_mtime_ns}\n".encode())
    return f"{package}:{digest.hexdigest()}"
