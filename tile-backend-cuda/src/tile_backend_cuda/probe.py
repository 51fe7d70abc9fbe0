"""NVIDIA GPUs that the driver shows this process, asked through ctypes. No driver: none."""

from __future__ import annotations

import ctypes
from functools import lru_cache
from uuid import UUID

from tile_core.hardware import Device, Target

DRIVER = "libcuda.so.1"
MAJOR, MINOR = 75, 76  # CUDA driver API, CUdevice_attribute: compute capability
BY_CAPABILITY = {
    (7, 0): "sm_70",
    (7, 5): "sm_75",
    (8, 0): "sm_80",
    (8, 6): "sm_86",
    (8, 9): "sm_89",
    (9, 0): "sm_90a",
    (10, 0): "sm_100a",
    (10, 3): "sm_103a",
    (12, 0): "sm_120a",
}


@lru_cache(maxsize=1)
def devices() -> tuple[Device, ...]:
    """The devices in the driver's order, asked once for each process. () without a driver or a device."""
    try:
        driver = ctypes.CDLL(DRIVER)
    except OSError:
        return ()
    count = ctypes.c_int()
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)):
        return ()
    return tuple(_device(driver, index) for index in range(count.value))


def arch_of(major: int, minor: int) -> str:
    """The target for a compute capability. Binaries run on later minors of one major, except those of ``a`` targets."""
    exact = BY_CAPABILITY.get((major, minor))
    older = [
        (m, a) for (j, m), a in BY_CAPABILITY.items() if j == major and m < minor and not a.endswith("a")
    ]
    return exact or max(older, default=(0, f"sm_{major}{minor}"))[1]


def runs(arch: str, device: str) -> bool:
    """Whether a binary for ``arch`` runs on a device of the architecture ``device``: of one major, and no newer minor.

    CUDA C++ Programming Guide, "Binary Compatibility"; PTX ISA: those of ``a`` targets run on their own alone.
    """
    if arch == device:
        return True
    wanted, there = (int(a.removeprefix("sm_").rstrip("a")) for a in (arch, device))
    return not arch.endswith("a") and wanted // 10 == there // 10 and wanted <= there


def _device(driver: ctypes.CDLL, index: int) -> Device:
    handle, version, memory = ctypes.c_int(), ctypes.c_int(), ctypes.c_size_t()
    name, uuid = ctypes.create_string_buffer(96), ctypes.create_string_buffer(16)
    driver.cuDeviceGet(ctypes.byref(handle), index)
    driver.cuDeviceGetName(name, len(name), handle)
    driver.cuDeviceGetUuid(uuid, handle)
    driver.cuDeviceTotalMem_v2(ctypes.byref(memory), handle)
    driver.cuDriverGetVersion(ctypes.byref(version))
    major, minor = (_attribute(driver, what, handle) for what in (MAJOR, MINOR))
    return Device(
        target=Target("cuda", arch_of(major, minor)),
        index=index,
        name=name.value.decode(errors="replace"),
        uuid=f"GPU-{UUID(bytes=uuid.raw)}",
        driver=f"{version.value // 1000}.{version.value % 1000 // 10}",
        memory=memory.value,
        torch=f"cuda:{index}",
    )


def _attribute(driver: ctypes.CDLL, what: int, handle: ctypes.c_int) -> int:
    value = ctypes.c_int()
    driver.cuDeviceGetAttribute(ctypes.byref(value), what, handle)
    return value.value
