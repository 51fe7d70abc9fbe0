"""Programmatic dependent launch, as calls of the prelude."""

from __future__ import annotations

from tile_core.program import Invoke, Stmt


class DependentLaunch:
    """``griddepcontrol``. PTX ISA: sm_90 and later; the launch must have the attribute of the driver."""

    def wait(self) -> Stmt:
        return Invoke("griddep_wait")

    def release(self) -> Stmt:
        return Invoke("griddep_launch")
