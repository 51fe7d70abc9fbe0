"""What a vendor implements: one ``Backend`` object, the small roles it hands out, and the values that cross the seam."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, runtime_checkable

from .errors import NoDevice, Unsupported
from .hardware import Device, Target, TargetInfo, TestedDevice
from .inference.plan import TilePlan
from .verification.heard import Emitted


class ApiVersion(NamedTuple):
    """Version of this interface. A backend fits if the major numbers are equal and its minor is not newer."""

    major: int
    minor: int


API = ApiVersion(1, 2)


@dataclass(frozen=True, slots=True)
class LaunchParam:
    """A parameter of the compiled entry point, as the launcher must check and pass it.

    ``shape`` and ``strides`` hold ints, and strings for symbolic dimensions (an expression over their names, or ``""``
    for a stride that need not be checked). ``kind``: ``tensor``, ``scalar``, ``pointer`` or ``workspace``.
    """

    name: str
    kind: str
    dtype: str
    shape: tuple[int | str, ...] = ()
    strides: tuple[int | str, ...] = ()
    written: bool = False
    alignment: int = 1


@dataclass(frozen=True, slots=True)
class LaunchSpec:
    """How an entry point is called: parameters in order, and extents of the grid as numbers or expressions.

    Expressions are Python text over the symbolic dimensions, with ``+ - * // %``, ``min`` and ``max``.
    ``entries``: one (entry point, grid, threads) for each launch, run one after the other.
    """

    params: tuple[LaunchParam, ...]
    entries: tuple[tuple[str, tuple[int | str, ...], tuple[int, ...]], ...]
    outputs: tuple[int, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Source:
    """Generated text. ``language`` names it (``llvm``, ``cuda``, ``wgsl``, ``python``); ``suffix`` is a file's."""

    text: str
    language: str
    suffix: str
    launch: LaunchSpec


@dataclass(frozen=True, slots=True)
class Artifact:
    """What the launcher loads. ``resources``: figures such as registers, spills or shared bytes.

    ``findings``: what the toolkit did that costs speed, such as spilled registers.
    """

    kind: str
    data: bytes
    log: str = ""
    resources: Mapping[str, int] = field(default_factory=dict[str, int])
    findings: tuple[Finding, ...] = ()


class Pass(Protocol):
    """A rewrite of a plan that the target adds after those of core."""

    name: str

    def __call__(self, plan: TilePlan) -> TilePlan: ...


class Lowering(Protocol):
    """Target-specific decisions about a plan."""

    def legalize(self, plan: TilePlan) -> TilePlan:
        """The plan as this target can run it. Raises ``Unsupported`` with the span of what it cannot do."""
        ...

    def passes(self) -> Sequence[Pass]:
        """Passes after core's, in order."""
        ...


class Codegen(Protocol):
    """Plan to text. Pure and deterministic; needs no toolkit."""

    def emit(self, plan: TilePlan) -> Source: ...


@runtime_checkable
class ShowsIr(Protocol):
    """A code generator that prints its source from a lowered program, and can show that."""

    def ir(self, plan: TilePlan) -> str: ...


@runtime_checkable
class ShowsEngines(Protocol):
    """A code generator whose threads work beside engines, and that can show what it prints of them."""

    def emitted(self, plan: TilePlan) -> Sequence[Emitted]:
        """The launches of ``emit`` with tokens, as the verification room wants them."""
        ...


class Compiler(Protocol):
    """Text to what a device loads."""

    def compile(self, source: Source, options: Mapping[str, Any]) -> Artifact: ...

    def fingerprint(self) -> str:
        """Versions of the toolkit: part of the cache key. Cheap: imports nothing heavy."""
        ...


@runtime_checkable
class Disassembles(Protocol):
    """A compiler that can show the machine code of an artifact as text."""

    def disassemble(self, source: Source, artifact: Artifact) -> str: ...


@runtime_checkable
class WritesPage(Protocol):
    """A backend whose kernels run in a web browser."""

    def page(self, name: str, source: Source, artifact: Artifact) -> Mapping[str, bytes]:
        """Files, by name, of a page that runs a compiled kernel; all that it needs is among them, so no network is used."""
        ...


class LoadedKernel(Protocol):
    """A kernel ready to run. ``arguments`` are pointers (int) and numbers in the order of ``LaunchSpec.params``.

    ``grids`` has one extent tuple for each entry. Runs on ``stream`` (None: the caller's current one), allocates and waits for
    nothing on the device.
    """

    def __call__(
        self, arguments: Sequence[int | float], grids: Sequence[tuple[int, ...]], stream: int | None = None
    ) -> None: ...


@runtime_checkable
class TensorKernel(Protocol):
    """A loaded kernel that is given the caller's own tensors where others get addresses: its memory is reached through objects."""

    takes_tensors: Literal[True]


class DirectKernel(LoadedKernel, Protocol):
    """A loaded kernel that checks the arguments of a call by itself, so that a warm call does nothing for each in Python."""

    def call(self, arguments: tuple[Any, ...], stream: int | None) -> bool:
        """Launch with the caller's own arguments, outputs included, on ``stream`` (None: the caller's current one).

        False, and nothing is launched, where an argument is wrong or out of the ordinary: the runtime then looks at them all,
        raises ``ArgumentError`` or launches by ``__call__``. So both must agree on what is right. Raises what the launch raises.
        """
        ...

    def shapes(
        self, arguments: tuple[Any, ...], outputs: tuple[int, ...]
    ) -> tuple[tuple[int, ...], ...] | None:
        """Shapes of the outputs (numbers of parameters, in order) that are allocated for a call with the other arguments.

        None where an argument is out of the ordinary, as for ``call``.
        """
        ...


class Launcher(Protocol):
    """Loads artifacts onto one device and runs them."""

    def load(self, artifact: Artifact, launch: LaunchSpec) -> LoadedKernel: ...

    def synchronize(self) -> None: ...

    def current_stream(self) -> int | None: ...


class EmulatedLaunch(Protocol):
    """What was found while one launch ran without its device; as text, the findings."""

    @property
    def clean(self) -> bool:
        """Nothing was found wrong."""
        ...


class Emulator(Protocol):
    """Runs generated sources on this computer, thread by thread, and looks for faults; such as ``tile_core.testing.machine``."""

    def run(
        self,
        source: Source,
        arguments: Sequence[Any],
        dims: Mapping[str, int],
        *,
        mode: str = "early",
        seed: int = 0,
        timeout: float = 120.0,
    ) -> Sequence[EmulatedLaunch]:
        """All launches in order. ``arguments``: numpy arrays, which change in place, and numbers; ``dims``: symbolic dimensions.

        ``mode``: when asynchronous work is done, ``early``, ``late`` or ``random`` (from ``seed``). ``timeout`` in seconds.
        """
        ...


class Timer(Protocol):
    """Measures a callable on a device."""

    def time(self, run: Callable[[], Any], *, warmup_ms: float = 25, repeat_ms: float = 100) -> Samples: ...


@dataclass(frozen=True, slots=True)
class Samples:
    """Times in milliseconds, sorted, and how they were taken."""

    times: tuple[float, ...]
    method: str

    @property
    def median(self) -> float:
        return self.quantile(0.5)

    def quantile(self, q: float) -> float:
        return self.times[min(len(self.times) - 1, int(q * len(self.times)))]

    def __str__(self) -> str:
        p20, p80 = self.quantile(0.2), self.quantile(0.8)
        return f"{self.median:.4g} ms (p20 {p20:.4g}, p80 {p80:.4g}, {len(self.times)} times, {self.method})"


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of a check: ``ok``, ``warning`` or ``error``, and what to do about it."""

    level: str
    message: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Check:
    """One row of ``tile doctor``. ``run`` never raises for a sick machine."""

    name: str
    run: Callable[[], Finding]


class Backend(ABC):
    """A vendor's target. Facts are cheap, never raise and need neither device nor toolkit; roles may import heavy things."""

    name: ClassVar[str]
    api: ClassVar[ApiVersion]  # a literal: the version of this interface that the backend was written for
    # Which tensors are on its devices: torch's device type and whether that torch is a HIP build, and DLPack's DLDeviceType.
    # A backend that declares neither is used only where it is named.
    torch_devices: ClassVar[tuple[tuple[str, bool], ...]] = ()
    dlpack_devices: ClassVar[tuple[int, ...]] = ()
    # Whether its launcher also takes tensors in the host's memory, for calls that name the backend.
    host_tensors: ClassVar[bool] = False
    # Among backends for the same tensors the highest preference is chosen when a call names no target.
    preference: ClassVar[int] = 0

    @abstractmethod
    def targets(self) -> Sequence[TargetInfo]:
        """Every architecture it can emit for; the first is the default."""

    def tested_devices(self) -> Sequence[TestedDevice]:
        """Devices that the conformance kit ran on: rows of ``devices.toml`` in the backend's package."""
        return read_tested_devices(type(self).__module__.partition(".")[0])

    def devices(self) -> Sequence[Device]:
        """What is here now. Never raises: () when there is no device or no driver."""
        return ()

    def runs(self, target: Target, device: Device) -> bool:
        """Whether the device can run what was compiled for ``target``. Default: it can if the architectures are equal."""
        return not target.arch or not device.target.arch or target.arch == device.target.arch

    @abstractmethod
    def lowering(self, info: TargetInfo) -> Lowering: ...

    @abstractmethod
    def codegen(self, info: TargetInfo) -> Codegen: ...

    @abstractmethod
    def compiler(self, info: TargetInfo) -> Compiler: ...

    @abstractmethod
    def launcher(self, device: Device) -> Launcher: ...

    def timer(self, device: Device) -> Timer:
        """Default: the host's clock around the callable and a synchronisation."""
        return HostTimer(self.launcher(device).synchronize)

    def emulator(self, info: TargetInfo) -> Emulator:
        """What runs the sources of ``info`` without a device. Raises ``Unsupported``: there is none, as by default."""
        raise Unsupported(f"backend {self.name!r} has no emulator")

    def checks(self) -> Sequence[Check]:
        return ()

    def info(self, target: Target) -> TargetInfo:
        """The facts of ``target``; its arch may be empty for the default. Raises ``Unsupported`` naming those there are."""
        found = self.targets()
        for info in found:
            if target.arch in ("", info.target.arch):
                return info
        known = ", ".join(i.target.arch for i in found)
        raise Unsupported(f"{self.name} has no architecture {target.arch!r}", help=f"it has: {known}")

    def device(self, index: int = 0) -> Device:
        """The device number ``index``. Raises ``NoDevice``."""
        found = self.devices()
        if index >= len(found):
            raise NoDevice(f"no {self.name} device {index} here", help="`tile doctor` says what is missing")
        return found[index]


class FactsOnly(Backend):
    """A backend that states facts and has no roles yet. Each role raises ``Unsupported`` and says which it is."""

    def lowering(self, info: TargetInfo) -> Lowering:
        raise self._no("lowering")

    def codegen(self, info: TargetInfo) -> Codegen:
        raise self._no("codegen")

    def compiler(self, info: TargetInfo) -> Compiler:
        raise self._no("compiler")

    def launcher(self, device: Device) -> Launcher:
        raise self._no("launcher")

    def _no(self, role: str) -> Unsupported:
        return Unsupported(
            f"backend {self.name!r} has no {role} in this version",
            why="it states facts of its targets, so plans can be made for them, and has not all roles yet",
            help="run the kernel on `cpu` or in the interpreter",
        )


class HostTimer:
    """Times by the host's clock, each run followed by a synchronisation."""

    def __init__(self, synchronize: Callable[[], None]) -> None:
        self.synchronize = synchronize

    def time(self, run: Callable[[], Any], *, warmup_ms: float = 25, repeat_ms: float = 100) -> Samples:
        import time

        def once() -> float:
            begin = time.perf_counter()
            run()
            self.synchronize()
            return (time.perf_counter() - begin) * 1e3

        spent = once()
        while spent < warmup_ms:
            spent += once()
        times = [once()]
        while sum(times) < repeat_ms or len(times) < 3:
            times.append(once())
        return Samples(tuple(sorted(times)), "host clock")


def read_tested_devices(package: str) -> tuple[TestedDevice, ...]:
    """Rows of ``devices.toml`` in an installed package; () if it has none."""
    from importlib.resources import files

    file = files(package).joinpath("devices.toml")
    if not file.is_file():
        return ()
    rows = read_toml(file.read_text("utf8")).get("device", [])
    return tuple(TestedDevice.of(row) for row in rows)


def read_toml(text: str) -> dict[str, Any]:
    """A TOML document as Python values."""
    import importlib
    import sys

    parser = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    return parser.loads(text)
