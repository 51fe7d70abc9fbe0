"""Which versions of clang know an architecture."""

from __future__ import annotations

# The first major version with an architecture, and the oldest one that is looked for: LLVM's release notes, AMDGPU.
SINCE = {"gfx90a": 17, "gfx942": 17, "gfx1100": 17, "gfx1201": 19, "gfx950": 20}
OLDEST, NEWEST = 17, 30


def least(arch: str) -> int:
    """The first major version that compiles for an architecture."""
    return SINCE.get(arch, OLDEST)
