"""Settings: every ``TILE_*`` variable, read when it is needed, with one way to set it for a while."""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from .errors import TileError, did_you_mean

SCHEDULES = ("fast", "optimal")
STAGES = ("program", "graph", "plan", "schedule", "ir", "source")
AUTO, ALWAYS, NEVER = "auto", "always", "never"


@dataclass(frozen=True, slots=True)
class Settings:
    """The value of each setting. An empty string or None means "not set"."""

    target: str = ""
    cache_dir: str = ""
    dump: str = ""
    interpret: bool = False
    disable_backends: str = ""
    traceback: str = ""
    threads: int = 0
    schedule: str = ""
    verify: str = AUTO

    @property
    def verifying(self) -> str:
        """``auto``, ``always`` or ``never``. Raises ``TileError`` for anything else."""
        if self.verify not in (AUTO, ALWAYS, NEVER):
            raise TileError(
                f"{variable_name('verify')}={self.verify!r} is none of {AUTO}, {ALWAYS}, {NEVER}",
                help=f"it means: {MEANING['verify']}",
            )
        return self.verify

    @property
    def dumped(self) -> frozenset[str]:
        """Stages to write to files. Raises ``TileError`` for a name that is none of ``STAGES``."""
        wanted = _names(self.dump)
        for name in wanted.difference(STAGES):
            raise TileError(
                f"{variable_name('dump')} names {name!r}, which is no stage",
                help=did_you_mean(name, STAGES) or f"stages: {', '.join(STAGES)}",
            )
        return wanted

    @property
    def optimal(self) -> bool:
        """Whether a solver looks for better schedules. Raises ``TileError`` for a word that is none of ``SCHEDULES``."""
        if self.schedule and self.schedule not in SCHEDULES:
            raise TileError(
                f"{variable_name('schedule')} is {self.schedule!r}, which is no way to schedule",
                help=did_you_mean(self.schedule, SCHEDULES) or f"ways: {', '.join(SCHEDULES)}",
            )
        return self.schedule == "optimal"

    @property
    def disabled(self) -> frozenset[str]:
        return _names(self.disable_backends)

    def cache_path(self) -> Path:
        """``TILE_CACHE_DIR``, or ``tile`` under the user's cache folder."""
        if self.cache_dir:
            return Path(self.cache_dir)
        import platformdirs

        return Path(platformdirs.user_cache_dir("tile"))


MEANING: dict[str, str] = {
    "target": "target used when a call names none: `cpu`, or `backend:arch` as `tile targets` lists them",
    "cache_dir": "folder of compiled kernels",
    "dump": "comma-separated stages to write to files: program, graph, plan, schedule, ir, source; kernels are then compiled anew",
    "interpret": "1: run every kernel in the interpreter",
    "disable_backends": "comma-separated backends to leave alone",
    "traceback": "full: show the frames inside tile in tracebacks",
    "threads": "worker threads of the `cpu` target (default: the cores this process may use)",
    "schedule": "optimal: z3 looks for better schedules of loops than the search finds, and its answers are cached (default: fast)",
    "verify": "what is proved of a kernel when it is compiled: `auto` (what costs little beside that), `always` (all), `never`",
}

_override: ContextVar[Settings | None] = ContextVar("tile_settings", default=None)


def current() -> Settings:
    """The settings now: those of the innermost ``scope``, else from the environment."""
    return _override.get() or from_environment()


def wanted_target() -> tuple[str, bool]:
    """The settings ``target`` and ``interpret`` alone: each call of a kernel asks for them."""
    scoped = _override.get()
    if scoped is not None:
        return scoped.target, scoped.interpret
    return os.environ.get("TILE_TARGET", "").strip(), _flag(os.environ.get("TILE_INTERPRET", ""))


# Reading a variable through os.environ takes over a microsecond, as long as the rest of a warm call's start; a look into what it
# wraps takes a twentieth of that.
_VARIABLES: Mapping[Any, Any] = getattr(os.environ, "_data", os.environ)
TARGET, INTERPRET = (
    getattr(os.environ, "encodekey", str)(name) for name in ("TILE_TARGET", "TILE_INTERPRET")
)
# What ``wanted_target`` follows from, unread, for who asks at each call: the scope, and the variables of these two names. Where
# these are the same objects as before, so is the target.
scope_now = _override.get
variable_now = _VARIABLES.get


def wanted_state() -> tuple[object, object]:
    """What ``wanted_target`` follows from: where two states are equal, so are the targets."""
    scoped = scope_now()
    if scoped is not None:
        return scoped.target, scoped.interpret
    return variable_now(TARGET), variable_now(INTERPRET)


def _names(text: str) -> frozenset[str]:
    return frozenset(name.strip() for name in text.split(",") if name.strip())


def _flag(text: str) -> bool:
    return text.strip().lower() not in ("", "0", "false", "no", "off")


def from_environment() -> Settings:
    """Settings as the environment gives them. A malformed value raises ``TileError`` naming the variable."""
    found: dict[str, Any] = {}
    for field in fields(Settings):
        variable = variable_name(field.name)
        text = os.environ.get(variable, "").strip()
        if not text:
            continue
        match field.default:
            case bool():
                found[field.name] = _flag(text)
            case int():
                if not text.isdigit():
                    raise TileError(
                        f"{variable}={text!r} is not a number", help=f"it means: {MEANING[field.name]}"
                    )
                found[field.name] = int(text)
            case _:
                found[field.name] = text
    return Settings(**found)


def variable_name(setting: str) -> str:
    return f"TILE_{setting.upper()}"


@contextmanager
def scope(**changes: Any) -> Generator[Settings, None, None]:
    """Other settings inside a ``with`` block: ``with settings.scope(target="cpu"): ...``."""
    token = _override.set(replace(current(), **changes))
    try:
        yield current()
    finally:
        _override.reset(token)
