"""Rows of ``tile doctor``: the driver, the runtime, the compiler with its linker and disassembler, and the devices."""

from __future__ import annotations

from tile_core.backend import Check, Finding
from tile_core.checks import devices, library

from . import probe


def _driver() -> Finding:
    if probe.TOPOLOGY.is_dir():
        return Finding("ok", "amdgpu (KFD)")
    return Finding(
        "error", "the amdgpu kernel driver is not loaded", "install it; kernels can be compiled without"
    )


def _compiler() -> Finding:
    """What there is, and which architectures lack one."""
    from .compiler import toolkit, versions

    library = toolkit.hiprtc.found()
    found = (*toolkit.compilers(), *((library,) if library else ()))
    if not found:
        return Finding("warning", "neither clang nor HIPRTC is found", toolkit.package("gfx942"))
    missing = [arch for arch in versions.SINCE if not any(c.knows(arch) for c in found)]
    text = ", ".join(map(str, found))
    if missing:
        lacks = f"{text}; none compiles for {' and '.join(missing)}"
        return Finding("warning", lacks, toolkit.package(missing[0]))
    return Finding("ok", text)


def _linker() -> Finding:
    from .compiler import toolkit

    for clang in toolkit.compilers():
        if clang.linker:
            return Finding("ok", clang.linker)
    return Finding("warning", f"no {toolkit.LINKER}", toolkit.package("gfx942"))


def _disassembler() -> Finding:
    from .compiler import toolkit

    found = next((p for c in toolkit.compilers() if (p := c.tool("llvm-objdump"))), None)
    return (
        Finding("ok", found)
        if found
        else Finding("warning", "no llvm-objdump", "apt-get install llvm-19, or newer")
    )


CHECKS = (
    Check("driver", _driver),
    library("HIP runtime", probe.RUNTIMES, "install ROCm, or put its lib folder on LD_LIBRARY_PATH"),
    Check("compiler", _compiler),
    Check("linker", _linker),
    Check("disassembler", _disassembler),
    devices(lambda: [d.name for d in probe.devices()], "no AMD GPU is visible: see HIP_VISIBLE_DEVICES"),
)
