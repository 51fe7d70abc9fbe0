"""What a case asks of a target, and the reason why a target cannot run it: from its facts, never from its name."""

from __future__ import annotations

from collections.abc import Sequence

from ..hardware import TargetInfo
from .kernels import Case


def missing(
    info: TargetInfo, *, dtypes: Sequence[str] = (), spaces: Sequence[str] = (), features: Sequence[str] = ()
) -> str:
    """Why ``info`` does not have what is asked, such as ``webgpu:default has no float16``; "" if it has it all."""
    lacks = [
        *(sorted(set(dtypes) - info.dtypes)),
        *(f"memory {s!r}" for s in spaces if info.space(s) is None),
        *(f"feature {f!r}" for f in sorted(set(features) - info.features)),
    ]
    return f"{info.target} has no {', no '.join(lacks)}" if lacks else ""


def unfit(case: Case, info: TargetInfo) -> str:
    """Why ``info`` cannot run ``case``; "" if it can."""
    return missing(info, dtypes=sorted(case.dtypes))
