"""The units of a core that work at a time, and how it is seen that they are done."""

from __future__ import annotations

from tile_core.hardware import Engine, Token

ENGINES = (
    Engine("alu", "synchronous"),
    Engine("sfu", "synchronous"),
    Engine("global", "interlock", "thread", shared=True),
    Engine("shared", "interlock", "thread", shared=True),
)
TOKENS = (Token("barrier"),)
