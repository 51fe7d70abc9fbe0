"""Find, load and check backends. Discovery reads metadata only; a backend is imported when its name is asked for."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import Distribution, EntryPoint, PackageNotFoundError, entry_points, version
from threading import RLock
from types import MappingProxyType
from typing import Any

import pluggy

from . import hookspecs, settings
from .backend import API, Backend
from .bounds import broken_bound
from .errors import (
    BackendConflict,
    BackendError,
    BackendIncompatible,
    BackendLoadFailed,
    BackendNotFound,
    did_you_mean,
)

GROUP = "tile_core.backends"
CORE = "tile-core"

# Backends that this project publishes: which package to install for each.
FIRST_PARTY: Mapping[str, str] = MappingProxyType(
    {name: f"tile-backend-{name}" for name in ("cuda", "rocm", "metal", "ascend", "webgpu", "cutedsl")}
)

EntryPoints = Callable[[], Iterable[EntryPoint]]
STATES = ("ok", "no device", "broken", "incompatible", "not installed", "disabled")


def _from_metadata() -> Iterable[EntryPoint]:
    return entry_points(group=GROUP)


@dataclass(frozen=True, slots=True)
class Status:
    """One row of ``tile targets``. ``state`` is one of ``STATES``; ``detail`` says why, or what to install."""

    name: str
    state: str
    detail: str = ""
    distribution: str = ""
    targets: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()


class Registry:
    """Backends by name. ``found`` gives the entry points to choose from (default: those of the installed packages)."""

    def __init__(self, found: EntryPoints = _from_metadata) -> None:
        self._found = found
        self._backends: dict[str, Backend] = {}
        self._announced: frozenset[str] | None = None  # names that the plugin being loaded may add; None: any
        self._lock = RLock()
        self._plugins = pluggy.PluginManager(hookspecs.PROJECT)
        self._plugins.add_hookspecs(hookspecs)
        hook = self._plugins.hook.tile_register_backends
        hook.call_historic(kwargs={"registry": self})

    # What a hook calls.

    def add(self, backend: object) -> None:
        """Take ``backend``. Raises ``BackendIncompatible``, ``BackendConflict`` or ``BackendLoadFailed``."""
        if not isinstance(backend, Backend):
            raise BackendLoadFailed(
                f"{backend!r} is no backend", help="derive it from tile_core.backend.Backend"
            )
        name, (major, minor) = backend.name, backend.api
        if major != API.major or minor > API.minor:
            raise BackendIncompatible(
                f"backend {name!r} was written for backend API {major}.{minor}, this tile-core has {API.major}.{API.minor}",
                help="install versions of both that belong together; `pip check` names the mismatch",
            )
        if self._announced is not None and name not in self._announced:
            raise BackendLoadFailed(
                f"backend {name!r} is not announced by its package",
                why=f"the package has entry points for {', '.join(sorted(self._announced))}",
                help=f"add an entry point {name!r} to the group {GROUP}",
            )
        if name in self._backends:
            raise BackendConflict(
                f"backend {name!r} is already registered by {type(self._backends[name]).__module__}"
            )
        self._backends[name] = backend

    # What core calls.

    def get(self, name: str) -> Backend:
        """The backend called ``name``, loaded if need be. Raises a ``BackendError`` that says what to do."""
        if name in settings.current().disabled:
            raise BackendNotFound(f"backend {name!r} is switched off", why="TILE_DISABLE_BACKENDS names it")
        with self._lock:
            if name not in self._backends:
                self._load(name)
            return self._backends[name]

    def add_plugin(self, plugin: Any, name: str = "") -> None:
        """Take backends from a module or object that has the hook, without any packaging. All or nothing."""
        with (
            self._lock,
            self._all_or_nothing(name or f"plugin {id(plugin)}", who=f"plugin {name or plugin!r}") as key,
        ):
            self._register(plugin, key)

    def installed(self) -> dict[str, tuple[EntryPoint, ...]]:
        """Every installed entry point by name, read from metadata alone; names that are switched off are left out."""
        disabled = settings.current().disabled
        return {name: points for name, points in self._all_points().items() if name not in disabled}

    def names(self) -> tuple[str, ...]:
        """Names that ``get`` may know: installed, or added by hand. Embedded backends (tile-core's own) come first."""
        found = self.installed()
        disabled = settings.current().disabled
        by_hand = (n for n in self._backends if n not in found and n not in disabled)
        embedded = [n for n, points in found.items() if _is_core(points)]
        return (*sorted(embedded), *sorted({*by_hand, *found} - set(embedded)))

    def embedded(self, name: str) -> bool:
        """Whether ``name`` is provided by tile-core itself."""
        return _is_core(self._all_points().get(name, ()))

    def usable(self) -> Iterator[Backend]:
        """Every backend that loads, in the order of ``names``; the others are passed over."""
        for name in self.names():
            try:
                yield self.get(name)
            except BackendError:
                continue

    def statuses(self) -> tuple[Status, ...]:
        """A row for every installed, added or known backend, also on a sick machine. Never raises."""
        names = {*FIRST_PARTY, *self._all_points(), *self._backends}
        order = sorted(names, key=lambda n: (not self.embedded(n), n not in FIRST_PARTY, n))
        return tuple(self._status(name) for name in order)

    # How a backend is loaded.

    def _all_points(self) -> dict[str, tuple[EntryPoint, ...]]:
        found: dict[str, tuple[EntryPoint, ...]] = {}
        for point in self._found():
            others = found.get(point.name, ())
            # the same distribution may be listed twice when its folder is on the path twice
            if not any(_who(o) == _who(point) and o.value == point.value for o in others):
                found[point.name] = (*others, point)
        return found

    def _load(self, name: str) -> None:
        found = self.installed()
        if name not in found:
            raise _not_found(name, {*found, *self._backends})
        if len(found[name]) > 1:
            both = " and ".join(sorted(_who(p) for p in found[name]))
            raise BackendConflict(f"backend {name!r} is provided by {both}", help="uninstall one of them")
        (point,) = found[name]
        if bound := broken_bound(_requires(point.dist), CORE, _core_version()):
            raise BackendIncompatible(
                f"{_who(point)} requires {bound}, this is {CORE} {_core_version()}",
                help="install versions of both that belong together",
            )
        self._announced = frozenset(n for n, points in found.items() if _who(points[0]) == _who(point))
        try:
            with self._all_or_nothing(f"{GROUP}:{name}", who=_who(point)) as key:
                self._register(point.load(), key)
                if name not in self._backends:
                    raise BackendLoadFailed(
                        f"{_who(point)} registered no backend named {name!r}",
                        help=f"{point.value} must have a hook `tile_register_backends` that adds it",
                    )
        finally:
            self._announced = None

    def _register(self, plugin: Any, key: str) -> None:
        if (
            self._plugins.get_name(plugin) is None
        ):  # else one module behind two entry points: its hook has run
            self._plugins.register(plugin, name=key)
            self._plugins.check_pending()

    @contextmanager
    def _all_or_nothing(self, key: str, who: str) -> Generator[str, None, None]:
        """Undo what a plugin that fails half way has done, and say whose it is."""
        before = dict(self._backends)
        try:
            yield key
        except (Exception, SystemExit) as error:
            self._backends = before
            if self._plugins.has_plugin(key):
                self._plugins.unregister(name=key)
            if isinstance(error, BackendError):
                raise
            raise _load_failed(who, error) from error

    def _status(self, name: str) -> Status:
        points = self._all_points().get(name, ())
        if name in settings.current().disabled:
            return Status(name, "disabled", "TILE_DISABLE_BACKENDS names it", _whose(points))
        if not points and name not in self._backends:
            return Status(name, "not installed", f"pip install {FIRST_PARTY[name]}")
        try:
            backend = self.get(name)
            targets = tuple(str(info.target) for info in backend.targets())
            devices = tuple(device.name for device in backend.devices())
        except BackendIncompatible as error:
            return Status(name, "incompatible", error.message, _whose(points))
        except BackendError as error:
            return Status(name, "broken", error.message, _whose(points))
        except Exception as error:  # a fact raised: the backend's fault, shown in its row
            return Status(name, "broken", f"{type(error).__name__}: {error}", _whose(points))
        state = "ok" if devices else "no device"
        return Status(name, state, ", ".join(devices), _whose(points), targets, devices)


@lru_cache(maxsize=1)
def registry() -> Registry:
    """The process's registry of installed backends. Tests make their own ``Registry``."""
    return Registry()


def _not_found(name: str, known: set[str]) -> BackendNotFound:
    have = f"no backend named {name!r}; installed: {', '.join(sorted(known)) or 'none'}"
    if name in FIRST_PARTY:
        return BackendNotFound(have, help=f"pip install {FIRST_PARTY[name]}")
    return BackendNotFound(have, help=did_you_mean(name, sorted({*known, *FIRST_PARTY})))


def _load_failed(who: str, error: BaseException) -> BackendLoadFailed:
    message, help = f"{who} is installed but does not load: {type(error).__name__}: {error}", ""
    if isinstance(error, pluggy.PluginValidationError):
        # pluggy's text has the plugin object in it, line breaks too; the first words say what is wrong
        reason = " ".join(str(error).split())
        message, help = (
            f"{who} does not fit the hooks: {reason}",
            "the hook is `tile_register_backends(registry)`",
        )
    return BackendLoadFailed(message, help=help)


def _who(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist else point.value


def _whose(points: tuple[EntryPoint, ...]) -> str:
    return " and ".join(sorted(_who(p) for p in points))


def _is_core(points: tuple[EntryPoint, ...]) -> bool:
    return bool(points) and all(p.dist is not None and p.dist.name == CORE for p in points)


def _requires(dist: Distribution | None) -> list[str]:
    return (dist.requires if dist else None) or []


@lru_cache(maxsize=1)
def _core_version() -> str:
    try:
        return version(CORE)
    except PackageNotFoundError:  # run from a source tree that is not installed
        return ""
