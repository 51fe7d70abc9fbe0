"""Targets and the facts of hardware: what a kernel can be compiled for, said without any device.

A target is not a device: ``cuda:sm_90a`` can be compiled for on a laptop. All values are frozen and check themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .dtypes import dtype
from .errors import KernelError
from .layout.layout import Axis, Layout, injective


@dataclass(frozen=True, slots=True)
class Target:
    """What to compile for: a backend, one of its architectures, and options. ``str`` and ``parse`` are inverse."""

    backend: str
    arch: str = ""
    options: tuple[tuple[str, str], ...] = ()

    @staticmethod
    def parse(text: str) -> Target:
        """``"cpu"``, ``"cuda:sm_90a"`` or ``"cuda:sm_90a,fast_math=1"``.

        Raises:
            KernelError: the text has another form.
        """
        name, *options = text.strip().split(",")
        backend, _, arch = name.partition(":")
        pairs = [o.partition("=") for o in options]
        if not backend.replace("_", "").isalnum() or not all(key and equals for key, equals, _ in pairs):
            raise KernelError(
                f"{text!r} is no target", help='write "backend", "backend:arch" or "backend:arch,key=value"'
            )
        return Target(backend, arch, tuple(sorted((key, value) for key, _, value in pairs)))

    def __str__(self) -> str:
        head = f"{self.backend}:{self.arch}" if self.arch else self.backend
        return ",".join((head, *(f"{k}={v}" for k, v in self.options)))


SCOPES = ("grid", "cluster", "block", "warp", "thread")


@dataclass(frozen=True, slots=True)
class MemorySpace:
    """One memory. ``capacity`` in bytes for one instance of ``scope``; ``banks`` of ``bank_bytes`` each (0: no banks).

    ``passes``: where lanes that a pass over the banks serves do not follow each other in reads of so many bytes, the lanes that
    generate all others by xor, those of one pass first.
    """

    name: str
    capacity: int
    alignment: int
    scope: str
    banks: int = 0
    bank_bytes: int = 4
    passes: tuple[tuple[int, tuple[int, ...]], ...] = ()

    def __post_init__(self) -> None:
        if self.scope not in SCOPES or self.capacity <= 0 or self.alignment <= 0:
            raise ValueError(
                f"{self.name}: scope {self.scope}, capacity {self.capacity}, alignment {self.alignment}"
            )


OBSERVED = ("signal", "group", "interlock", "synchronous")


@dataclass(frozen=True, slots=True)
class Engine:
    """A unit that works in order, asynchronously to the others.

    ``observed``: how its completion is seen: ``signal`` (it arrives on a barrier that anybody may wait on), ``group``
    (its issuer waits for a count), ``interlock`` (hardware stalls the dependent instruction) or ``synchronous``.
    ``issued_by``: who starts its ops: ``thread``, ``warp``, ``warpgroup``, ``block`` or the engine's own name.
    ``shared``: a bandwidth that many ops use at once, rather than one op at a time.
    Clocks of one core, 0 where nobody said: ``latency`` from the end of the work to when its result is there, ``issue`` that
    its issuer spends on an op, ``signal`` until somebody who waits sees the end. ``rate``: bytes or results per clock and core.
    """

    name: str
    observed: str
    issued_by: str = "warp"
    in_order: bool = True
    shared: bool = False
    latency: int = 0
    issue: int = 0
    signal: int = 0
    rate: float = 0.0

    def __post_init__(self) -> None:
        if self.observed not in OBSERVED:
            raise ValueError(f"{self.name}: observed by {self.observed!r}, not one of {OBSERVED}")
        if min(self.latency, self.issue, self.signal, self.rate) < 0:
            raise ValueError(f"{self.name}: costs below 0")


@dataclass(frozen=True, slots=True)
class Token:
    """How a dependence between engines is written: its ``kind`` (``mbarrier``, ``commit_group``, ``flag``, ...).

    ``limit``: how many there are in a block (0: as many as memory holds).
    """

    kind: str
    limit: int = 0


Widths = Callable[[int], Layout]


@dataclass(frozen=True, slots=True)
class Atom:
    """A matrix instruction: ``c[m, n] += a[m, k] b[k, n]`` by ``threads`` threads.

    ``shape`` is (m, largest n, k); any n that is a multiple of ``step_n`` up to that will do. ``types`` are those of
    a, b and c. ``a`` and ``b`` are register layouts (thread, register) of the operand, None if it can only come from shared
    memory; ``shared_a``: a is read from shared memory by the instruction itself. ``k_major``: operands in shared memory
    must be contiguous along k (a stored as (m, k), b as (n, k)). ``c`` gives the accumulator's layout for a width n.
    ``sums``: the memory in which the unit adds up; if that is not the registers, they get the sums when all is done.
    ``rate`` is multiply-adds times two per clock and core. ``requires`` names features of the target.
    ``source`` is where the facts stand.
    """

    name: str
    shape: tuple[int, int, int]
    threads: int
    types: tuple[str, str, str]
    a: Layout | None
    b: Layout | None
    c: Widths
    rate: int
    step_n: int = 0
    shared_a: bool = False
    k_major: bool = False
    sums: str = "register"
    engine: str = "tensor"
    requires: tuple[str, ...] = ()
    source: str = ""

    def __post_init__(self) -> None:
        m, n, k = self.shape
        for name in self.types:
            dtype(name)
        if self.n_step <= 0 or n % self.n_step:
            raise ValueError(f"{self.name}: widths are multiples of {self.n_step}, the largest is {n}")
        for what, layout, shape in (("a", self.a, (m, k)), ("b", self.b, (k, n)), ("c", self.c(n), (m, n))):
            if layout is None:
                continue
            # an operand's layout may describe one step along n
            sizes = {shape, (k, self.n_step)} if what == "b" else {shape}
            if layout.shape not in sizes:
                raise ValueError(
                    f"{self.name}: {what} is laid out as {layout.shape}, the instruction has {shape}"
                )
            if not injective(layout) or layout.cosize(Axis.THREAD) > self.threads:
                raise ValueError(
                    f"{self.name}: the layout of {what} does not spread over {self.threads} threads"
                )

    @property
    def n_step(self) -> int:
        return self.step_n or self.shape[1]

    @property
    def apart(self) -> bool:
        """Whether the sums are in a memory of their own while the unit works."""
        return self.sums != "register"

    @property
    def bits(self) -> int:
        """Width of an element of a."""
        return dtype(self.types[0]).bits


@dataclass(frozen=True, slots=True)
class BulkRules:
    """What a copy engine that moves boxes by itself asks for.

    ``alignment``: bytes that rows, strides and addresses are multiples of. ``spans``: rows in bytes of the swizzles that it
    writes. ``largest``: elements along one side of a box. ``rank``: dimensions of a tensor. ``place``: bytes that the address of a
    box in shared memory is a multiple of. ``adds``: types of tensors that it can add boxes to, each element atomically.
    ``sharing``: blocks that can share copies.
    ``group``: threads that issue and wait for asynchronous matrix instructions together, and change their registers together.
    """

    alignment: int
    spans: tuple[int, ...]
    largest: int
    rank: int
    group: int
    place: int
    sharing: int = 1
    adds: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class TargetInfo:
    """All facts about one architecture that recommendation, inference and lowering need.

    ``subgroup``: threads that run in lockstep (1: the target is not SIMT, a block is one thread of control).
    ``dtypes``: names of types it computes with. ``peaks``: ``"float16"`` -> matrix operations per second of the whole chip,
    ``"global"`` -> bytes per second. ``cores``: how many blocks' worth of hardware (SM, CU, core). ``clock`` in Hz.
    ``registers``: 32-bit registers a thread may use. ``panel_spans``: row lengths in bytes that its bulk copies and matrix
    unit understand in shared memory, widest first. ``features`` are names that atoms may require.
    ``cache``: bytes of the last cache, which all cores share; 0 where nobody said.
    ``bulk``: rules of its copy engine, None if it has none that signals by itself.
    ``sources``: where the numbers come from. ``estimated``: the fields that are from secondary sources.
    """

    target: Target
    spaces: tuple[MemorySpace, ...]
    engines: tuple[Engine, ...]
    tokens: tuple[Token, ...]
    subgroup: int
    max_threads: int
    dtypes: frozenset[str]
    atoms: tuple[Atom, ...]
    peaks: Mapping[str, float]
    cores: int
    clock: float
    registers: int = 255
    panel_spans: tuple[int, ...] = ()
    features: frozenset[str] = frozenset()
    bulk: BulkRules | None = None
    cache: int = 0
    sources: tuple[str, ...] = ()
    estimated: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        names = [s.name for s in self.spaces]
        if len(set(names)) != len(names) or "global" not in names:
            raise ValueError(f"{self.target}: memory spaces {names}")
        if self.subgroup < 1 or self.max_threads % self.subgroup:
            raise ValueError(f"{self.target}: {self.max_threads} threads in subgroups of {self.subgroup}")
        for name in self.dtypes:
            dtype(name)
        for atom in self.atoms:
            if missing := set(atom.requires) - self.features:
                raise ValueError(f"{self.target}: {atom.name} requires {sorted(missing)}")

    def __hash__(self) -> int:
        return hash((self.target, len(self.atoms)))

    @property
    def simt(self) -> bool:
        """Whether a block is many threads in subgroups (else one thread of control works on whole tiles)."""
        return self.max_threads > 1

    def space(self, name: str) -> MemorySpace | None:
        return next((s for s in self.spaces if s.name == name), None)


@dataclass(frozen=True, slots=True)
class Device:
    """A piece of hardware that is here now. ``torch`` is torch's name of it, such as ``cuda:0``."""

    target: Target
    index: int
    name: str
    uuid: str = ""
    driver: str = ""
    memory: int = 0
    torch: str = ""


@dataclass(frozen=True, slots=True)
class TestedDevice:
    """One run of the conformance kit on a real device. Written by the kit, never by hand."""

    device: str
    arch: str
    driver: str
    toolkit: str
    backend_version: str
    suite_version: str
    date: str
    passed: int
    failed: int
    skipped: Mapping[str, int] = field(default_factory=dict[str, int])
    report: str = ""

    @staticmethod
    def of(row: Mapping[str, Any]) -> TestedDevice:
        """A row of ``devices.toml``. Unknown or missing keys raise ``TypeError``."""
        return TestedDevice(**row)
