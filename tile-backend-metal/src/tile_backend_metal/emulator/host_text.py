"""MSL as C++ for the host: attributes go, threadgroup arrays become places in the machine's memory, entries become callable."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

KERNEL = re.compile(
    r"\[\[kernel\b(?P<more>[^\]]*)\]\]\s*void\s+(?P<name>\w+)\s*\((?P<parameters>.*?)\)\s*\{", re.DOTALL
)
PARAMETER = re.compile(r"(?P<declaration>[^,\[\]]*?)(?P<name>\w+)\s*\[\[\s*(?P<attribute>\w+)[^\]]*\]\]")
ARENA = re.compile(r"alignas\(\d+\)\s+threadgroup\s+(?P<type>\w+)\s+(?P<name>\w+)\s*\[\s*\d+\s*\]\s*;")

# MSL 5.2.3.6: inputs that a kernel may ask for, as the machine has them
INPUTS = {
    "threadgroup_position_in_grid": "uint3{machine::here->block.x, machine::here->block.y, machine::here->block.z}",
    "thread_index_in_threadgroup": "machine::here->number",
    "thread_index_in_simdgroup": "machine::here->lane",
    "simdgroup_index_in_threadgroup": "machine::here->subgroup",
}
NARROW = {
    "half": "half({})",
    "bfloat": "bfloat({})",
    "fp8_e4m3_t": "float_to_float8_e4m3fn({})",
    "fp8_e5m2_t": "float_to_float8_e5m2({})",
}


@dataclass(frozen=True)
class _Parameter:
    type: str
    name: str
    attribute: str

    @property
    def taken(self) -> str:
        """Its type in the callable: numbers come by value, those of narrow types as float."""
        if self.type.endswith("*"):
            return self.type
        return "float" if self.plain in NARROW else self.plain

    @property
    def plain(self) -> str:
        return self.type.replace("constant", "").replace("&", "").strip()

    @property
    def given(self) -> str:
        return NARROW.get(self.plain, "{}").format(self.name)


def entry_of(kernel: str) -> str:
    """The name of the function that the machine calls for a kernel."""
    return f"{kernel}_entry"


def for_host(text: str) -> str:
    """A whole source as C++; lines stay, and entries follow at the end."""
    entries = [_entry(m["name"], list(_parameters(m["parameters"]))) for m in KERNEL.finditer(text)]
    text = KERNEL.sub(_bare, text)
    text = ARENA.sub(
        lambda m: f"{m['type']}* const {m['name']} = ({m['type']}*)machine::shared_dynamic();", text
    )
    return "\n".join((text, *entries))


def _parameters(text: str) -> Iterator[_Parameter]:
    for m in PARAMETER.finditer(text):
        yield _Parameter(m["declaration"].strip(), m["name"], m["attribute"])


def _bare(m: re.Match[str]) -> str:
    """The kernel's head without attributes, on as many lines."""
    parameters = re.sub(r"\s*\[\[[^\]]*\]\]", "", m["parameters"])
    lines = "\n" * (m[0].count("\n") - parameters.count("\n"))
    return f"{lines}static void {m['name']}({parameters}) {{"


def _entry(name: str, parameters: list[_Parameter]) -> str:
    own = [p for p in parameters if p.attribute == "buffer"]
    taken = ", ".join(f"{p.taken} {p.name}" for p in own)
    given = ", ".join(p.given if p.attribute == "buffer" else INPUTS[p.attribute] for p in parameters)
    return f"static void {entry_of(name)}({taken}) {{ {name}({given}); }}"
