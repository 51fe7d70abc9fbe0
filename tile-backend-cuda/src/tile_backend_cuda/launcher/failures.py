"""Errors of the CUDA driver in words: what happened and what to do."""

from __future__ import annotations

from tile_core.errors import ArgumentError, BackendError, InternalError, NoDevice, TileError

# CUresult of cuda.h: name, what to do
MEANINGS = {
    1: ("invalid value", ""),
    2: ("out of memory", "free memory of the device, or use smaller tensors"),
    3: ("the driver is not initialised", "`tile doctor` says more"),
    4: ("the driver is shutting down", "launch no kernels while the interpreter exits"),
    100: ("no device", "see CUDA_VISIBLE_DEVICES and `tile doctor`"),
    101: ("no such device", "see CUDA_VISIBLE_DEVICES and `tile devices`"),
    200: ("the binary is not valid", "clear the cache with `tile cache clear`, or export the bundle again"),
    201: ("the context is not valid", ""),
    209: (
        "the binary is for another architecture",
        "compile it for this device: `tile devices` names its target",
    ),
    218: ("the binary is not valid", ""),
    222: ("the toolkit is newer than the driver", "update the driver, or compile with an older NVRTC"),
    223: ("the binary needs features that this device does not have", ""),
    500: ("a name is not found in the binary", ""),
    700: (
        "an earlier kernel accessed memory it may not",
        "run the kernel in the interpreter, which checks each access, or under compute-sanitizer",
    ),
    701: ("the kernel asks for more registers, threads or shared memory than there are", "use smaller tiles"),
    702: ("an earlier kernel ran for too long", ""),
    714: ("an earlier kernel misused an address space", ""),
    715: ("an earlier kernel ran an illegal instruction", "please report it"),
    716: ("an earlier kernel made a misaligned access", "please report it"),
    718: ("an earlier kernel used an invalid program counter", "please report it"),
    719: ("an earlier kernel failed", "run it in the interpreter, which checks each access"),
    801: ("not supported on this device", ""),
    802: ("the system is not ready", "look at the state of the NVLink fabric manager"),
    803: ("the driver and its user-space library do not fit", "restart, or reinstall the driver"),
    900: ("not permitted while a stream is captured", "call the kernel once before the capture"),
    901: ("the capture is invalidated", "call the kernel once before the capture"),
}
NO_DEVICE = (100, 101)
OUR_FAULT = (0, 500)  # 0: nothing that the driver said
ENCODE = "cuTensorMapEncodeTiled"


def failure(error: int, what: str) -> TileError:
    """The error to raise for a code of the driver. ``what``: the function that gave it, or a sentence of our own for 0."""
    if error == 1 and what == ENCODE:
        return ArgumentError(
            "the copy engine cannot address a tensor of this call",
            why="its address and its strides must be multiples of 16 bytes, its extents under 2**32",
            help="pass a contiguous tensor that begins at a multiple of 16 bytes",
        )
    meaning, remedy = MEANINGS.get(error, ("unknown error", ""))
    if error in OUR_FAULT:
        return InternalError(what if error == 0 else f"{what}: {meaning} (CUDA error {error})")
    kind = NoDevice if error in NO_DEVICE else BackendError
    return kind(f"{what}: {meaning} (CUDA error {error})", help=remedy)


def raise_failure(error: int, what: str) -> None:
    """Raise it; what the native launcher calls."""
    raise failure(error, what)
