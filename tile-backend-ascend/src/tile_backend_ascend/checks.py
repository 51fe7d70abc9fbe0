"""Rows of ``tile doctor``: CANN's runtime and compiler, and the devices."""

from __future__ import annotations

from tile_core.checks import devices, library, package, program

from . import probe

CHECKS = (
    library("CANN runtime", (probe.RUNTIME,), "install CANN and source its set_env.sh"),
    program("compiler", ("bisheng", "ccec"), "install the CANN toolkit and source its set_env.sh"),
    package("BiShengIR", ("ascendnpu-ir",)),
    devices(
        lambda: [d.name for d in probe.devices()], "no Ascend NPU is visible: see ASCEND_RT_VISIBLE_DEVICES"
    ),
)
