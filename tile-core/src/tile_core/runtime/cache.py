"""Compiled kernels on disk: one file each, named by its key, checked when it is read.

A file that is truncated, of another version or unreadable is as good as none. Files are written beside and renamed, so two
processes that compile the same kernel both succeed. A folder that cannot be written costs a warning.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import settings
from ..backend import Artifact, Source
from .manifest import artifact_of, artifact_row, launch_of, launch_row

MAGIC = b"tile-kernel 1\n"
LIMIT = 2 << 30  # bytes kept on disk; the least recently used kernels go first


class CacheWarning(UserWarning):
    """The cache of compiled kernels cannot be used; kernels are compiled again in each process."""


@dataclass(frozen=True)
class Entry:
    """A compiled kernel: what its launcher needs, its source, and what it is."""

    artifact: Artifact
    source: Source
    about: Mapping[str, Any]


@dataclass(frozen=True)
class Row:
    """A cached kernel as ``tile cache`` shows it."""

    key: str
    name: str
    target: str
    bytes: int
    used: float


class Cache:
    """The cache in one folder; by default that of the settings."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = (folder or settings.current().cache_path()) / "kernels"

    def path(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key}.tile"

    def get(self, key: str) -> Entry | None:
        """The kernel of ``key``, or None if there is no good one."""
        path = self.path(key)
        try:
            entry = unpack(path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError):
            return None
        with suppress(OSError):
            os.utime(path)  # the time of last use, for eviction
        return entry

    def put(self, key: str, entry: Entry) -> Path | None:
        """Store a kernel; gives its file, or None with a warning when that is not possible."""
        path = self.path(key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(pack(entry))
                os.replace(name, path)
            except BaseException:
                os.unlink(name)
                raise
        except OSError as error:
            warnings.warn(
                f"compiled kernels cannot be kept in {self.folder}: {error}. Set TILE_CACHE_DIR to a folder that can be written.",
                CacheWarning,
                stacklevel=2,
            )
            return None
        self.evict()
        return path

    def files(self) -> Iterator[Path]:
        yield from self.folder.glob("*/*.tile")

    def rows(self) -> list[Row]:
        """All kernels, the last used first. Files that cannot be read are listed with an empty name."""
        found: list[Row] = []
        for path in self.files():
            try:
                status, about = path.stat(), unpack(path.read_bytes()).about
            except (OSError, ValueError, KeyError, TypeError):
                status, about = path.stat(), dict[str, Any]()
            found.append(
                Row(
                    path.stem, about.get("name", ""), about.get("target", ""), status.st_size, status.st_mtime
                )
            )
        return sorted(found, key=lambda r: -r.used)

    def clear(self) -> int:
        """Remove all kernels; gives how many there were."""
        count = 0
        for path in list(self.files()):
            try:
                path.unlink()
                count += 1
            except FileNotFoundError:  # another process was faster
                pass
        return count

    def evict(self, limit: int = LIMIT) -> None:
        """Remove the least recently used kernels until at most ``limit`` bytes are left."""
        sizes: list[tuple[float, int, Path]] = []
        for path in self.files():
            try:
                status = path.stat()
            except OSError:
                continue
            sizes.append((status.st_mtime, status.st_size, path))
        left = sum(size for _, size, _ in sizes)
        for _, size, path in sorted(sizes, key=lambda s: s[0]):
            if left <= limit:
                break
            try:
                path.unlink()
                left -= size
            except OSError:
                continue


def pack(entry: Entry) -> bytes:
    """Magic line, SHA-256 of the rest, length of the manifest, manifest (JSON), artifact."""
    manifest = {
        "about": dict(entry.about),
        "artifact": artifact_row(entry.artifact),
        "source": {
            "text": entry.source.text,
            "language": entry.source.language,
            "suffix": entry.source.suffix,
        },
        "launch": launch_row(entry.source.launch),
    }
    text = json.dumps(manifest).encode()
    body = len(text).to_bytes(8, "little") + text + entry.artifact.data
    return MAGIC + hashlib.sha256(body).digest() + body


def unpack(data: bytes) -> Entry:
    """The entry of ``pack``. Raises ``ValueError``, ``KeyError`` or ``TypeError`` if the bytes are not one."""
    head = len(MAGIC)
    body = data[head + 32 :]
    if data[:head] != MAGIC or hashlib.sha256(body).digest() != data[head : head + 32]:
        raise ValueError("not a cached kernel, or a damaged one")
    size = int.from_bytes(body[:8], "little")
    found = json.loads(body[8 : 8 + size])
    source = Source(launch=launch_of(found["launch"]), **found["source"])
    return Entry(artifact_of(found["artifact"], body[8 + size :]), source, found["about"])
