"""Rows of ``tile doctor``: the driver, the compiler, the launcher, the disassembler and the devices."""

from __future__ import annotations

from tile_core.backend import Check, Finding
from tile_core.checks import devices, library

from . import probe


def _nvrtc() -> Finding:
    from .compiler import toolkit

    found = toolkit.libraries()
    if not found:
        return Finding("warning", "NVRTC is not found", f"pip install {toolkit.NEWEST}")
    return Finding(
        "ok", ", ".join(f"{toolkit.dotted(f.version) or 'version unknown'} ({f.path})" for f in found)
    )


def _launcher() -> Finding:
    from .launcher import native

    if native.module() is not None:
        return Finding("ok", "native")
    if native.built() is not None:
        return Finding(
            "warning", "ctypes, as the native extension is of other sources", "install the package again"
        )
    remedy = "install the package's wheel, or from source with a C compiler: a launch then takes a tenth of the time"
    return Finding("warning", "ctypes, without the native extension", remedy)


def _disassembler() -> Finding:
    from .compiler import disassembler, toolkit

    found = [path for name, _ in disassembler.PROGRAMS if (path := toolkit.program(name))]
    return (
        Finding("ok", found[0]) if found else Finding("info", "none", f"pip install {disassembler.PACKAGES}")
    )


CHECKS = (
    library("driver", (probe.DRIVER,), "install the NVIDIA driver; kernels can be compiled without it"),
    Check("compiler", _nvrtc),
    Check("launcher", _launcher),
    Check("disassembler", _disassembler),
    devices(lambda: [d.name for d in probe.devices()], "no NVIDIA GPU is visible: see CUDA_VISIBLE_DEVICES"),
)
