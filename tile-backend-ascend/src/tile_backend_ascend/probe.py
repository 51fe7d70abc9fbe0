"""Ascend NPUs of this machine, asked through CANN's runtime library. Without it: none."""

from __future__ import annotations

import ctypes
from functools import lru_cache

from tile_core.hardware import Device, Target

RUNTIME = "libascendcl.so"


@lru_cache(maxsize=1)
def devices() -> tuple[Device, ...]:
    """The devices that the runtime shows, asked once for each process. () without CANN or a device."""
    try:
        acl = ctypes.CDLL(RUNTIME)
    except OSError:
        return ()
    # A second initialisation (torch_npu may have done the first) answers with an error that does no harm.
    acl.aclInit(None)
    count = ctypes.c_uint32()
    if acl.aclrtGetDeviceCount(ctypes.byref(count)):
        return ()
    acl.aclrtGetSocName.restype = ctypes.c_char_p
    name = (acl.aclrtGetSocName() or b"").decode()
    return tuple(
        Device(Target("ascend", arch_of(name)), index, name, torch=f"npu:{index}")
        for index in range(count.value)
    )


def arch_of(soc: str) -> str:
    """``Ascend910B1`` is 910B1."""
    return soc.removeprefix("Ascend")
