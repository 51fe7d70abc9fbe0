"""Whether z3 may be asked in this process."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

MAPS = Path("/proc/self/maps")


def usable(maps: Path = MAPS) -> bool:
    """False if a library of another version of z3 is loaded: the two share what C++ has once in a process, and abort.

    Mesa's drivers load LLVM, and with it the system's z3, as soon as somebody looks for a GPU.
    """
    found = find_spec("z3")
    if found is None or found.origin is None:
        return False
    own = str(Path(found.origin).parent)
    lines = maps.read_text(encoding="utf8").splitlines() if maps.exists() else ()
    return all(own in line for line in lines if "libz3." in line)
