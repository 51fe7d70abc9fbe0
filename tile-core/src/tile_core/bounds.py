"""Version bounds in a distribution's metadata: whether the installed version of one of its requirements is inside.

Only what a release bound needs (``>= > <= < == !=`` on dotted numbers); pip has checked the rest.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence

_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9._-]+)\s*(?:\[[^\]]*\])?\s*\(?([^;)]*)\)?\s*(;.*)?$")
_BOUND = re.compile(r"(>=|<=|==|!=|<|>)\s*(\d+(?:\.\d+)*)$")
_HOLDS: dict[str, Callable[[tuple[int, ...], tuple[int, ...]], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
}


def broken_bound(requires: Sequence[str], name: str, version: str) -> str:
    """The first requirement on ``name`` that ``version`` does not meet, such as ``tile-core<0.1``; "" if all hold."""
    have = _release(version)
    if not have:
        return ""
    for requirement in requires:
        match = _REQUIREMENT.match(requirement)
        if match is None or match[3] or _canonical(match[1]) != _canonical(name):
            continue
        for text in match[2].split(","):
            bound = _BOUND.match(text.strip())
            if bound and not _HOLDS[bound[1]](*_same_length(have, _release(bound[2]))):
                return f"{name}{text.strip()}"
    return ""


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _release(version: str) -> tuple[int, ...]:
    match = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(int(n) for n in match[0].split(".")) if match else ()


def _same_length(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    n = max(len(a), len(b))
    return a + (0,) * (n - len(a)), b + (0,) * (n - len(b))
