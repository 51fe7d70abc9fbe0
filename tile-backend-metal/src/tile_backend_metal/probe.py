"""The Mac's default GPU, asked through the Objective-C runtime. Elsewhere: none."""

from __future__ import annotations

import ctypes
import platform
from ctypes import util
from functools import lru_cache
from typing import Any

from tile_core.hardware import Device, Target

FRAMEWORK = "/System/Library/Frameworks/Metal.framework/Metal"
# "MTLCreateSystemDefaultDevice": a program without graphics finds a device only where this framework is loaded, too.
GRAPHICS = "/System/Library/Frameworks/CoreGraphics.framework/CoreGraphics"
FAMILIES = (10, 9, 8, 7)  # MTLGPUFamilyAppleN is 1000 + N
UTF8 = 4


def on_mac() -> bool:
    return platform.system() == "Darwin"


@lru_cache(maxsize=1)
def devices() -> tuple[Device, ...]:
    """The default device, asked once for each process. () elsewhere than on macOS, and for GPUs older than Apple7 or of others."""
    if not on_mac():
        return ()
    try:
        _, metal, objc = (ctypes.CDLL(name) for name in (GRAPHICS, FRAMEWORK, util.find_library("objc")))
    except OSError:
        return ()
    metal.MTLCreateSystemDefaultDevice.restype = ctypes.c_void_p
    handle = metal.MTLCreateSystemDefaultDevice()
    return _device(objc, handle) if handle else ()


def _device(objc: ctypes.CDLL, handle: int) -> tuple[Device, ...]:
    family = next((n for n in FAMILIES if _supports(objc, handle, n)), None)
    if family is None:
        return ()
    name = _send(objc, _send(objc, handle, "name"), "UTF8String", result=ctypes.c_char_p)
    memory = _send(objc, handle, "recommendedMaxWorkingSetSize", result=ctypes.c_uint64)
    found = Device(
        Target("metal", f"apple{family}"),
        0,
        name.decode() if name else "Apple GPU",
        driver=f"macOS {platform.mac_ver()[0]}",
        memory=memory,
        torch="mps:0",
    )
    return (found,)


def _supports(objc: ctypes.CDLL, handle: int, family: int) -> bool:
    return bool(_send(objc, handle, "supportsFamily:", (ctypes.c_long, 1000 + family), result=ctypes.c_bool))


def _send(
    objc: ctypes.CDLL,
    receiver: int,
    selector: str,
    *arguments: tuple[Any, int],
    result: Any = ctypes.c_void_p,
) -> Any:
    """``[receiver selector:arguments...]``; each argument is (C type, value)."""
    objc.sel_registerName.restype = ctypes.c_void_p
    objc.sel_registerName.argtypes = (ctypes.c_char_p,)
    types = (ctypes.c_void_p, ctypes.c_void_p, *(t for t, _ in arguments))
    message = ctypes.CFUNCTYPE(result, *types)(("objc_msgSend", objc))
    return message(receiver, objc.sel_registerName(selector.encode()), *(v for _, v in arguments))
