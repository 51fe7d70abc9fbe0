"""How far each target gets on a machine without accelerators, and the table that says so: ``python support_table.py --write``.

The test beside it does for each target what its row says; the recorded devices are the backends' own ``devices.toml``.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from tile_core.registry import registry

sys.path.insert(0, str(Path(__file__).parents[1] / "device"))

from example_cases import Example, cases

PAGE = Path(__file__).parents[2] / "docs" / "support.md"

# what is done with a target -> the words of the table
WAYS = {
    "executed": "executed",
    "compiled": "compiled and emulated",
    "source": "emulated source",
}


@dataclass(frozen=True)
class Row:
    """A target and what is done with it: a key of ``WAYS``; by which tools."""

    target: str
    way: str
    tools: str

    def __post_init__(self) -> None:
        if self.way not in WAYS:
            raise ValueError(f"{self.target}: {self.way!r} is none of {', '.join(WAYS)}")


ROWS = (
    Row("cpu", "executed", "LLVM"),
    Row("webgpu:lavapipe", "executed", "wgpu on Mesa's lavapipe"),
    Row("cuda:sm_90a", "compiled", "NVRTC; machine emulator"),
    Row("cuda:sm_80", "compiled", "NVRTC; machine emulator"),
    Row("rocm:gfx90a", "compiled", "clang; machine emulator, waves of 64"),
    Row("rocm:gfx942", "compiled", "clang; machine emulator, waves of 64"),
    Row("metal:apple9", "source", "machine emulator"),
)

KERNELS = (
    "gemm_relu:gemm_relu",
    "softmax:softmax",
    "layer_norm:layer_norm",
    "flash_attention:attention",
    "split_k:split_k",
    "dequant_gemm:dequant_gemm",
    "conv2d:conv2d",
)


def sizes(kernel: str) -> list[Example]:
    """An even and a ragged problem."""
    small = [c for c in cases(kernel) if not c.large and 0 not in (c.arguments or ())]
    return [small[0], small[-1]]


def table() -> str:
    lines = ["| target | every kernel is | by | recorded on devices |", "|---|---|---|---|"]
    for row in ROWS:
        name, _, arch = row.target.partition(":")
        tested = [t for t in registry().get(name).tested_devices() if t.arch == arch]
        shown = "; ".join(f"{t.device}, {t.date}: {t.passed} cases passed, {t.failed} failed" for t in tested)
        lines.append(f"| `{row.target}` | {WAYS[row.way]} | {row.tools} | {shown or 'none'} |")
    return "\n".join(lines)


TEXT = """# Support

What tile's own tests do with each target, on a machine without accelerators, for the same source files: {kernels}. Each at an
even and at a ragged size; the results agree with the interpreter's. This page is generated from the table that the test runs.

{table}

*Executed*: the kernel ran on the target itself. *Compiled and emulated*: the vendor's compiler took the source, and the machine
emulator ran it; no device was asked. *Emulated source*: the emulator ran the source as its language's specification reads; no
compiler of that language was asked. Devices are recorded by the conformance kit when it runs on one: see
[write_a_backend.md](write_a_backend.md).

Backends that are not in the table state facts only: plans and layouts can be made for their targets, code not yet.
"""


def page() -> str:
    files = ", ".join(f"[{k.split(':')[0]}](../examples/{k.split(':')[0]}.py)" for k in KERNELS)
    return TEXT.format(kernels=files, table=table())


if __name__ == "__main__" and "--write" in sys.argv:
    PAGE.write_text(page(), "utf8")
