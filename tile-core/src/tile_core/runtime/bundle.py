"""Compiled kernels as folders: written on one machine, called on another that has neither compiler nor TVM nor z3.

A bundle is ``manifest.json`` (what it is, how it is called, versions and digests), the artifact, and the source for people.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..backend import Artifact, Backend, Finding, LaunchSpec, LoadedKernel, Source
from ..errors import BackendError, TileError
from ..hardware import Target
from ..registry import registry
from .cache import Entry
from .calling import Call, Direct, ordered
from .failures import folded
from .manifest import artifact_of, artifact_row, launch_of, launch_row
from .reach import reachable
from .resident import Resident

if TYPE_CHECKING:
    from .compiled import Kernel
    from .targeted import TargetKernel

FORMAT = 1
MANIFEST = "manifest.json"


class Bundle:
    """A kernel that was compiled elsewhere. Call it as the kernel it came from; it runs on the target it was compiled for."""

    def __init__(self, name: str, entry: Entry, target: Target) -> None:
        self.name = name
        self.target = target
        self._kernel = _Stored(entry, target)
        self._direct: tuple[Direct, ...] = ()

    def __call__(self, /, *arguments: Any, stream: int | None = None, **named: Any) -> Any:
        """Run the kernel; gives the outputs that the runtime allocates, alone or in a tuple.

        Arguments are given in order, or by the names of the kernel's parameters.

        Raises:
            ArgumentError: an argument does not fit; the message names it.
            NoDevice: there is no device of the target.
        """
        if not named:
            for launched in self._direct:
                if found := launched(arguments, stream):
                    return None if found is True else found[0]
        return self._call(arguments, stream, named)

    @folded
    def _call(self, arguments: tuple[Any, ...], stream: int | None, named: Mapping[str, Any]) -> Any:
        if named:
            params = [p.name for p in self.launch.params if p.kind != "dim"]
            names = [name for n, name in enumerate(params) if n not in self.launch.outputs]
            arguments = ordered(self.name, names, arguments, named)
        call = Call.of(arguments)
        reachable(self.backend, call.where)

        def loaded() -> LoadedKernel:
            found, further = self._kernel.loaded(call.index), self._kernel.direct(call.index)
            if further is not None and further not in self._direct:
                self._direct = (*self._direct, further)
            return found

        return call.run(self.name, self.launch, loaded, stream)

    @property
    def backend(self) -> Backend:
        return self._kernel.backend

    @property
    def launch(self) -> LaunchSpec:
        """How it is called."""
        return self._kernel.entry.source.launch

    @property
    def source(self) -> str:
        """The generated source."""
        return self._kernel.entry.source.text

    @property
    def artifact(self) -> Artifact:
        """What the launcher loads."""
        return self._kernel.entry.artifact

    @property
    def resources(self) -> Mapping[str, int]:
        """Figures of the compiled kernel, such as bytes of scratch or registers."""
        return self.artifact.resources

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What the toolkit did that costs speed."""
        return self.artifact.findings

    @property
    def versions(self) -> Mapping[str, str]:
        """Of the packages and the toolkit that made it."""
        return self._kernel.entry.about["versions"]

    def __repr__(self) -> str:
        return f"<bundle {self.name}: {self.target}>"


class _Stored(Resident):
    def __init__(self, entry: Entry, target: Target) -> None:
        super().__init__(target)
        self._entry = entry

    @property
    def entry(self) -> Entry:
        return self._entry


def export(kernel: Kernel, folder: Path) -> Path:
    """Write a kernel as a bundle, compiled for the target of a call without tensors.

    Gives the folder, which is made if it is not there.

    Raises:
        TileError: the folder cannot be written.
    """
    compiled = kernel.on(None)
    write(folder, kernel.name, compiled.target, compiled.entry, _versions(compiled))
    return folder


def write(folder: Path, name: str, target: Target, entry: Entry, versions: Mapping[str, str]) -> None:
    """Write a compiled kernel as a bundle. Raises ``TileError`` if the folder cannot be written."""
    source, artifact = entry.source, entry.artifact
    names = {"artifact": f"{name}.{artifact.kind}", "source": f"{name}{source.suffix}"}
    contents = {"artifact": artifact.data, "source": source.text.encode()}
    manifest = {
        "format": FORMAT,
        "name": name,
        "target": str(target),
        "files": {k: {"name": names[k], "sha256": _digest(data)} for k, data in contents.items()},
        "artifact": artifact_row(artifact),
        "source": {"language": source.language, "suffix": source.suffix},
        "launch": launch_row(source.launch),
        "versions": dict(versions),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for k, data in contents.items():
            (folder / names[k]).write_bytes(data)
        # last, so that a bundle with a manifest is whole
        (folder / MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf8")
    except OSError as error:
        raise TileError(f"the bundle cannot be written to {folder}: {error}") from error


def load(folder: str | Path) -> Bundle:
    """The kernel in a folder that ``kernel.export`` wrote; needs its backend's package, and a device only when it is called.

    Raises:
        BackendNotFound: the package of its backend is not installed.
        BackendError: the folder is no bundle, is damaged, or was written by a later version.
    """
    path = Path(folder)
    try:
        manifest = json.loads((path / MANIFEST).read_text("utf8"))
        if manifest["format"] != FORMAT:
            raise BackendError(
                f"the bundle {path} has format {manifest['format']}, this version of tile reads {FORMAT}",
                help="export it again with this version, or install the version that wrote it",
            )
        data = {k: _contents(path, row) for k, row in manifest["files"].items()}
        source = Source(
            data["source"].decode("utf8"), launch=launch_of(manifest["launch"]), **manifest["source"]
        )
        artifact = artifact_of(manifest["artifact"], data["artifact"])
        entry = Entry(artifact, source, {"versions": manifest["versions"]})
        target = Target.parse(manifest["target"])
        bundle = Bundle(manifest["name"], entry, target)
    except FileNotFoundError as error:
        raise BackendError(
            f"there is no bundle in {path}: {error.filename} is missing",
            help="`kernel.export(folder)` or `tile export FILE:KERNEL FOLDER` writes one",
        ) from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BackendError(f"the bundle {path} cannot be read: {type(error).__name__}: {error}") from error
    registry().get(target.backend)  # a missing package shows now, not at the first call
    return bundle


def _contents(folder: Path, row: Mapping[str, str]) -> bytes:
    if Path(row["name"]).name != row["name"]:
        raise ValueError(f"{row['name']!r} is no name of a file in the bundle")
    data = (folder / row["name"]).read_bytes()
    if _digest(data) != row["sha256"]:
        raise ValueError(f"{row['name']} is damaged, or was changed after the export")
    return data


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _versions(kernel: TargetKernel) -> dict[str, str]:
    package = type(kernel.backend).__module__.partition(".")[0].replace("_", "-")
    found = {"toolkit": kernel.backend.compiler(kernel.info).fingerprint()}
    for name in dict.fromkeys(("tile-core", package)):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found
