"""TVM's LLVM IR made small, deterministic and complete.

Takes the text of a module that TVM wrote without optimisation, gives text without debug information, addresses and
runtime hooks, and with the prelude functions that it calls.
"""

from __future__ import annotations

import re

from .machine import Machine
from .prelude.library import collect

DROPPED_TAILS = re.compile(r", !(?:dbg|tbaa|prof) !\d+")
WRAPPING = re.compile(r"\b(add|sub|mul|shl)((?: n[su]w)+)\b")
FUSED = re.compile(
    r"^  (%\S+) = call (\S+) @llvm\.fmuladd\.\w+\(\2 (\S+), \2 (\S+), \2 (\S+)\)$", re.MULTILINE
)
FUNCTION = re.compile(r"^define [^@]*@([\w.]+)\((.*?)\)[^{]*\{\n(.*?)^\}\n", re.MULTILINE | re.DOTALL)
DECLARATION = re.compile(r"^declare [^@]*@([\w.]+)\(.*$", re.MULTILINE)
HEADER = re.compile(r"^target (?:datalayout|triple) = .*$", re.MULTILINE)


def finished(text: str, machine: Machine, private: dict[str, int]) -> str:
    """The final module. ``private`` tells, for each entry point, which parameter is the first scratch block.

    Scratch blocks are marked ``noalias``: nothing else points into them. Tensors are not: a caller may pass one tensor
    twice. Signed arithmetic loses ``nsw``: integers of a kernel wrap. Fused multiply-adds become two operations: a
    kernel's floats are rounded after each.
    """
    bodies = []
    for name, parameters, body in FUNCTION.findall(text):
        if name in private:
            bodies.append(_entry(name, parameters, body, private[name]))
    names = {name for name in DECLARATION.findall(text) if name.startswith("tile.")}
    functions, declared = collect(names, machine.features, machine.vector_bytes)
    declared |= {
        m[1]: re.sub(r" #\d+$", "", m[0])
        for m in DECLARATION.finditer(text)
        if not m[1].startswith("tile.") and "fmuladd" not in m[1]
    }
    attributes = (
        f'attributes #0 = {{ nounwind "target-cpu"="{machine.cpu}" "target-features"="{machine.feature_text}" '
        f'"prefer-vector-width"="{machine.vector_bytes * 8}" }}'
    )
    parts = [
        *HEADER.findall(text),
        *sorted(declared.values()),
        *bodies,
        *(f.text for f in functions),
        attributes,
    ]
    return "\n\n".join(parts) + "\n"


def _entry(name: str, parameters: str, body: str, first_private: int) -> str:
    types = parameters.split(", ") if parameters else []
    marked = [
        p.replace("ptr ", "ptr noalias align 64 ", 1) if first_private <= n < len(types) - 3 else p
        for n, p in enumerate(types)
    ]
    lines = [line for line in body.split("\n") if "#dbg_" not in line]
    text = DROPPED_TAILS.sub("", "\n".join(lines))
    text = WRAPPING.sub(r"\1", text)
    text = FUSED.sub(r"  \1.product = fmul \2 \3, \4\n  \1 = fadd \2 \1.product, \5", text)
    text = re.sub(r"%(\d+)\.product", r"%product\1", text)
    return f"define i32 @{name}({', '.join(marked)}) #0 {{\n{text}}}"
