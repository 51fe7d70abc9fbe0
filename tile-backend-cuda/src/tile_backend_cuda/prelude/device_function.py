"""One named device helper: its C++ signature, its body for the device and its body for the emulated machine."""

from __future__ import annotations

import re
from dataclasses import dataclass

PARAMETER = re.compile(r"^(?P<type>.+?)\s*(?P<name>\w+)(?:\s*=\s*(?P<default>\S+))?$")


@dataclass(frozen=True, slots=True)
class Helper:
    """A function that generated kernels may call.

    ``device`` and ``host`` are statements. ``since``: the first compute capability, times 10, that has the instruction;
    ``exact`` that only this architecture's ``a`` variant has it. ``needs``: helpers that the bodies call.
    ``isa``: the section of the PTX ISA. ``note``: a rule of the hardware that the body keeps.
    """

    name: str
    family: str
    returns: str
    parameters: str
    device: str
    host: str
    isa: str
    since: int = 75
    exact: bool = False
    template: str = ""
    needs: tuple[str, ...] = ()
    note: str = ""

    def __post_init__(self) -> None:
        if not self.device or not self.host or not self.isa:
            raise ValueError(f"helper {self.name} lacks a body or the section of the ISA it comes from")
        for parameter in split(self.parameters):
            if not PARAMETER.match(parameter):
                raise ValueError(f"helper {self.name}: cannot read the parameter `{parameter}`")

    @property
    def signature(self) -> str:
        template = f"template <{self.template}> " if self.template else ""
        return f"{template}{self.returns} {self.name}({self.parameters})"

    def device_text(self) -> str:
        template = f"template <{self.template}> " if self.template else ""
        note = f"// {self.note}\n" if self.note else ""
        head = f"{template}static __device__ __forceinline__ {self.returns} {self.name}({self.parameters})"
        return f"{note}{head} {{ {self.device} }}\n"

    def host_text(self) -> str:
        """With one more parameter, which tells the machine the caller's line."""
        template = f"template <{self.template}> " if self.template else ""
        line = f"{self.parameters}, " if self.parameters else ""
        head = f"{template}static inline __attribute__((always_inline)) {self.returns} {self.name}"
        return f"{head}({line}int line_ = __builtin_LINE()) {{ machine::at(line_); {self.host} }}\n"


def split(parameters: str) -> list[str]:
    return [p.strip() for p in parameters.split(",") if p.strip()]


def named(parameters: str) -> list[tuple[str, str]]:
    """(type, name) of each parameter."""
    found = [PARAMETER.match(p) for p in split(parameters)]
    return [(m["type"].strip(), m["name"]) for m in found if m]
