"""How many registers a thread of each role has: those that only start copies need few, those that compute can use the rest."""

from __future__ import annotations

FEW_REGISTERS = {1: 56, 2: 40, 3: 32}  # of a thread that only starts copies, by how many groups compute
LEAST_REGISTERS = 24  # of such a thread (PTX ISA, setmaxnreg), where the others need what it can do without
ADDRESSES = 28  # registers that a thread which computes should have beside its tiles
FEW_ADDRESSES = 20  # those that it can do with
FEWEST_REGISTERS = 32
REGISTER_FILE = 65536
REGISTER_STEP = 8  # registers of a group change in steps of 8 (PTX ISA, setmaxnreg)
MOST_REGISTERS = 240
ADDING_REGISTERS = 168  # of a thread that only adds up: 128 sums, and what addresses take


def alike(groups: int, group: int, resident: int, needed: int = 0) -> tuple[int, int] | None:
    """(registers of a thread that copies, of one that computes) where ``groups`` groups do the same; None: as they are.

    ``group``: threads of a group. ``resident``: blocks on a core. ``needed``: registers of a thread's tiles.
    """
    each = REGISTER_FILE // ((groups + 1) * group * resident) // REGISTER_STEP * REGISTER_STEP
    if each >= MOST_REGISTERS or groups not in FEW_REGISTERS:
        return None
    all = each * (groups + 1)
    usual, most = (_shared(all, groups, few) for few in (FEW_REGISTERS[groups], LEAST_REGISTERS))
    return most if usual[1] < needed + ADDRESSES and usual[1] < most[1] else usual


def scarce(groups: int, group: int, resident: int, needed: int) -> bool:
    """Whether threads that compute get more registers than usual."""
    return alike(groups, group, resident, needed) != alike(groups, group, resident)


def _shared(all: int, groups: int, few: int) -> tuple[int, int]:
    return few, min(MOST_REGISTERS, (all - few) // groups // REGISTER_STEP * REGISTER_STEP)


def for_tiles(groups: int, group: int) -> int:
    """Registers that the tiles of a thread may take at once, of a block that is alone on its core; 0: they are not shared out."""
    each = REGISTER_FILE // ((groups + 1) * group) // REGISTER_STEP * REGISTER_STEP
    if each >= MOST_REGISTERS or groups not in FEW_REGISTERS:
        return 0
    return _shared(each * (groups + 1), groups, LEAST_REGISTERS)[1] - FEW_ADDRESSES


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
