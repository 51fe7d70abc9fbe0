"""Price of a solution in clocks of one core: the busiest of matrix unit, load/store unit and issue slots, plus latencies.

The constants are plausible, not calibrated on a device.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from math import gcd, prod

from ..expr import Space
from ..hardware import TargetInfo
from ..layout.access import digits_of, vector_width
from ..layout.algebra import access as access_map
from ..layout.convert import BARRIER, Conversion, Kind
from ..layout.layout import Axis, Layout, grouped
from ..layout.partition import combining
from .maps import pulled
from .model import Access, Change, Cost, Elementwise, GemmChoice, Multiply, Op, Prefix, Problem, Reduction

LINE = 128  # bytes shared memory moves in a clock
ISSUE = 4  # instructions a core issues in a clock, each for one subgroup
SECTOR = 32  # bytes of global memory that travel together
REUSE = 4  # multiply-adds a value serves once it is in a register, without a matrix unit
OVER = 1000  # clocks for each register above the limit: it would be spilled


class Meter:
    """Adds up the load of each unit; the only mutable thing here."""

    __slots__ = ("issue", "latency", "memory", "shared", "tensor", "times")

    def __init__(self, times: int = 1) -> None:
        self.tensor = self.shared = self.issue = self.memory = self.latency = 0.0
        self.times = times

    def merge(self, other: Meter) -> None:
        self.tensor += other.tensor
        self.shared += other.shared
        self.issue += other.issue
        self.memory += other.memory
        self.latency += other.latency

    def add(
        self, tensor: float = 0, shared: float = 0, issue: float = 0, memory: float = 0, latency: float = 0
    ) -> None:
        self.tensor += tensor * self.times
        self.shared += shared * self.times
        self.issue += issue * self.times
        self.memory += memory * self.times
        self.latency += latency * self.times


Prices = dict[tuple[str, Layout], Meter]


def price(
    problem: Problem,
    ops: Iterable[Op],
    info: TargetInfo,
    known: Mapping[str, Layout],
    loops: Mapping[str, Layout],
    gemms: Mapping[str, GemmChoice],
    changes: tuple[Change, ...],
    bits: Mapping[str, int],
    prices: Prices,
) -> Cost:
    """The cost of ``ops``, a part of the problem. ``prices`` keeps the price of (op, layout) over many attempts."""
    meter = Meter()
    warps = -(-problem.threads // info.subgroup)
    for op in ops:
        if isinstance(op, Multiply):
            meter.times = problem.repeats.get(op.name, 1)
            _multiply(meter, op, gemms[op.name], info.subgroup)
            continue
        layout = loops[op.name] if isinstance(op, Elementwise) else known[op.source.name]
        part = prices.get((op.name, layout))
        if part is None:
            part = prices[op.name, layout] = Meter(problem.repeats.get(op.name, 1))
            _alone(part, op, layout, problem.threads, warps, info.subgroup)
        meter.merge(part)
    for change in changes:
        meter.times = problem.repeats.get(change.op, 1)
        _change(meter, change.conversion, warps)
    return _total(meter, known, bits, info)


@lru_cache(maxsize=4096)
def words(layout: Layout, bits: int) -> int:
    """32-bit registers that a fragment takes in each thread."""
    return -(-layout.cosize(Axis.REGISTER) * bits // 32)


def _total(meter: Meter, known: Mapping[str, Layout], bits: Mapping[str, int], info: TargetInfo) -> Cost:
    registers = sum(words(layout, bits[name]) for name, layout in known.items())
    shared, issue, traffic = meter.shared / LINE, meter.issue / ISSUE, meter.memory / SECTOR
    over = max(0, registers - info.registers)
    time = max(meter.tensor, shared, issue, traffic) + meter.latency + OVER * over
    return Cost(time, registers, meter.tensor, shared, issue, traffic)


def _alone(part: Meter, op: Op, layout: Layout, threads: int, warps: int, subgroup: int) -> None:
    match op:
        case Elementwise():
            _elementwise(part, op, layout, threads, warps)
        case Reduction() | Prefix():
            _across(part, op, layout, warps, subgroup)
        case _:
            raise TypeError(type(op).__name__)


def _multiply(meter: Meter, op: Multiply, choice: GemmChoice, subgroup: int) -> None:
    m, n = choice.c.box
    k = op.shape[2] if choice.a is None else choice.a.box[1]
    wm, wn = choice.warps
    if choice.atom is None:
        each = m * n * k / subgroup
        meter.add(issue=each, shared=each * (op.a.bits + op.b.bits) / 8 / REUSE)
        return
    height, _, depth = choice.atom.shape
    meter.add(tensor=2 * m * n * k / choice.atom.rate)
    if op.a.space is Space.SHARED:
        meter.add(shared=m * k * op.a.bits / 8 * wn)
    if op.b.space is Space.SHARED:
        meter.add(shared=k * n * op.b.bits / 8 * (m / height if choice.atom.shared_a else wm))
    meter.add(issue=m / height * n / choice.n * k / depth)


def _elementwise(meter: Meter, op: Elementwise, loop: Layout, threads: int, warps: int) -> None:
    slots = loop.cosize(Axis.REGISTER)
    if op.fragments:
        meter.add(issue=slots * op.work * warps)
    for access in op.accesses:
        if access.tile.space is not Space.FRAGMENT:
            _memory(meter, access, op, loop, threads, warps)


def memory_map(access: Access, op: Elementwise, loop: Layout, layout: Layout, threads: int) -> Layout | None:
    """(thread, register of the loop) -> memory, for an access of a loop nest, less its constant offset."""
    target = pulled(
        layout, tuple(replace(i, constant=0) if i.constant else i for i in access.index), op.extents
    )
    return None if target is None else access_map(loop, target, threads)


def _memory(meter: Meter, access: Access, op: Elementwise, loop: Layout, threads: int, warps: int) -> None:
    tile = access.tile
    found = memory_map(access, op, loop, tile.memory(), threads)
    slots = loop.cosize(Axis.REGISTER)
    if found is None:
        meter.add(issue=slots * warps, memory=slots * threads * SECTOR)
        return
    width = guarded_width(found, loop, access)
    meter.add(issue=slots / width * warps)
    size = slots * threads * tile.bits / 8
    if tile.space is Space.SHARED:
        meter.add(shared=size * max(1, 4 / (width * tile.bits / 8)))
    else:
        meter.add(memory=size * max(1, SECTOR / _run(found, width, tile.bits)))


def guarded_width(found: Layout, loop: Layout, access: Access) -> int:
    """Elements of one vector access: a guard must not cut it, and nothing unknown or constant may misalign it."""
    tile = access.tile
    strides = tile.strides or tuple(prod(tile.shape[d + 1 :]) for d in range(len(tile.shape)))
    constant = sum(i.constant * s for i, s in zip(access.index, strides, strict=True))
    width = vector_width(found, tile.bits, keep=gcd(tile.align, constant))
    while width > 1 and loop.padded and loop.shape[-1] % width:
        width //= 2
    return width


def _run(found: Layout, width: int, bits: int) -> float:
    """Bytes that neighbouring lanes touch without a gap."""
    digits = digits_of(found)
    run = width
    for it in sorted(digits[0], key=lambda i: i.stride) if digits else ():
        if it.axis is Axis.MEMORY and it.stride == run:
            run *= it.extent
    return run * bits / 8


def _across(meter: Meter, op: Reduction | Prefix, source: Layout, warps: int, subgroup: int) -> None:
    """A reduction or scan: registers, then shuffles, then partial results that meet in shared memory."""
    groups = grouped(source)
    slots = source.cosize(Axis.REGISTER)
    if groups is None:
        meter.add(issue=slots * warps, shared=prod(source.box) * op.source.bits / 4, latency=BARRIER)
        return
    results = prod(
        i.extent for d, g in enumerate(groups) for i in g if d != op.dim and i.axis is Axis.REGISTER
    )
    plan = combining([i for i in groups[op.dim] if i.axis is Axis.THREAD and i.extent > 1], subgroup)
    meter.add(issue=slots * warps + len(plan.shuffles) * results * warps * ISSUE)
    if plan.shared > 1:
        meter.add(shared=plan.shared * op.result.bytes * 2, latency=BARRIER)


def _change(meter: Meter, c: Conversion, warps: int) -> None:
    if c.kind is Kind.SHUFFLE:
        meter.add(issue=(c.shuffles * ISSUE + c.selects) * warps)
    elif c.kind is Kind.SHARED:
        meter.add(shared=2.0 * c.shared_bytes, latency=BARRIER, issue=2.0 * c.shared_bytes / 512)
