"""HIP sources on the machine emulator: the meaning of their instructions on this computer."""

from __future__ import annotations

from .emulate import RocmEmulator, run

__all__ = ["RocmEmulator", "run"]
