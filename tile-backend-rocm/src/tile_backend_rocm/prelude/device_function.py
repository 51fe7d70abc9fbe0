"""One named device helper: its C++ signature, its body for the device and its body for the emulated machine."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Helper:
    """A function that generated kernels may call.

    ``device`` and ``host`` are statements; without ``host`` the device's body is good for both. ``needs``: helpers that the
    bodies call. ``isa``: where AMD says what it does. ``note``: a rule of the hardware that the body keeps.
    """

    name: str
    returns: str
    parameters: str
    device: str
    isa: str
    host: str = ""
    template: str = ""
    needs: tuple[str, ...] = ()
    note: str = ""

    def __post_init__(self) -> None:
        if not self.device or not self.isa:
            raise ValueError(f"helper {self.name} lacks a body or the section of the ISA it comes from")

    @property
    def _template(self) -> str:
        return f"template <{self.template}> " if self.template else ""

    def device_text(self) -> str:
        note = f"// {self.note}\n" if self.note else ""
        head = f"{self._template}TILE_DEVICE {self.returns} {self.name}({self.parameters})"
        return f"{note}{head} {{ {self.device} }}\n"

    def host_text(self) -> str:
        """With one more parameter, which tells the machine the caller's line."""
        line = f"{self.parameters}, " if self.parameters else ""
        head = f"{self._template}static inline __attribute__((always_inline)) {self.returns} {self.name}"
        at = "machine::at(line_); " if self.host else ""
        return f"{head}({line}int line_ = __builtin_LINE()) {{ {at}{self.host or self.device} }}\n"
