"""How many registers a thread of each role has: those that only start copies need few, those that compute can use the rest."""

from __future__ import annotations

FEW_REGISTERS = {1: 56, 2: 40, 3: 32}  # of a thread that only starts copies, by how many groups compute
FEWEST_REGISTERS = 32
REGISTER_FILE = 65536
REGISTER_STEP = 8  # registers of a group change in steps of 8 (PTX ISA, setmaxnreg)
MOST_REGISTERS = 240
ADDING_REGISTERS = 168  # of a thread that only adds up: 128 sums, and what addresses take


def alike(groups: int, group: int, resident: int) -> tuple[int, int] | None:
    """(registers of a thread that copies, of one that computes) where ``groups`` groups do the same; None: as they are.

    ``group``: threads of a group. ``resident``: blocks on a core.
    """
    each = REGISTER_FILE // ((groups + 1) * group * resident) // REGISTER_STEP * REGISTER_STEP
    if each >= MOST_REGISTERS or groups not in FEW_REGISTERS:
        return None
    few = FEW_REGISTERS[groups]
    many = (each * (groups + 1) - few) // groups // REGISTER_STEP * REGISTER_STEP
    return few, min(MOST_REGISTERS, many)


def apart(groups: int, group: int, resident: int) -> tuple[int, int, int]:
    """(registers of a thread that copies, of one of the launch's own, of one of the front), which has one group.

    Teams of one group each have as many; several groups that only add up have what that takes.
    """
    file = REGISTER_FILE // group // resident
    few = FEW_REGISTERS[2]
    own = (file - few) // 2 if groups == 1 else ADDING_REGISTERS
    shares = few, own, file - few - groups * own
    few, own, front = (min(MOST_REGISTERS, n // REGISTER_STEP * REGISTER_STEP) for n in shares)
    return few, own, front


def at_first(groups: int, group: int, resident: int) -> int:
    """Registers of each thread when a block with so many groups begins."""
    return REGISTER_FILE // (groups * group * resident)
