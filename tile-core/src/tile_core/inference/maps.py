"""Which element of a buffer a loop iteration touches, as sums of loop digits; and layouts carried across such maps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod

from ..layout.algebra import cut, top_split
from ..layout.layout import Axis, Iter, Layout, Shape, grouped, positions, refined


@dataclass(frozen=True, slots=True)
class Digit:
    """``(loop // low) % extent * stride``, where ``loop`` is the number of a loop.

    ``last``: the digit reaches the end of the loop, so the modulo does nothing and the extent may be rounded up.
    """

    loop: int
    low: int
    extent: int
    stride: int
    last: bool = True

    @property
    def top(self) -> int:
        return (self.extent - 1) * self.stride


@dataclass(frozen=True, slots=True)
class Index:
    """An index expression as a sum of loop digits and a constant. ``opaque``: it is not one.

    Division and modulo by positive numbers split digits; where a carry is possible the result is opaque.
    """

    digits: tuple[Digit, ...] = ()
    constant: int = 0
    opaque: bool = False

    def __add__(self, other: Index | int) -> Index:
        if isinstance(other, int):
            return replace(self, constant=self.constant + other)
        return Index(self.digits + other.digits, self.constant + other.constant, self.opaque or other.opaque)

    def __mul__(self, factor: int) -> Index:
        digits = tuple(replace(d, stride=d.stride * factor) for d in self.digits)
        return Index(digits, self.constant * factor, self.opaque or factor < 1)

    def __floordiv__(self, by: int) -> Index:
        return self._split(by)[0]

    def __mod__(self, by: int) -> Index:
        return self._split(by)[1]

    def _split(self, by: int) -> tuple[Index, Index]:
        high: list[Digit] = []
        low: list[Digit] = []
        for d in self.digits:
            if d.stride % by == 0:
                high.append(replace(d, stride=d.stride // by))
            elif d.top < by:
                low.append(d)
            elif by % d.stride == 0 and (d.last or d.extent * d.stride % by == 0):
                step = by // d.stride
                low.append(replace(d, extent=step, last=False))
                high.append(Digit(d.loop, d.low * step, -(-d.extent // step), 1, d.last))
            else:
                return OPAQUE, OPAQUE
        up, down = divmod(self.constant, by)
        if self.opaque or sum(d.top for d in low) + down >= by:
            return OPAQUE, OPAQUE  # a carry: not digit-wise
        return Index(tuple(high), up), Index(tuple(low), down)


OPAQUE = Index(opaque=True)


def loops(*extents: int) -> tuple[Index, ...]:
    """The plain index of each loop of a nest."""
    return tuple(Index((Digit(k, 1, n, 1),)) for k, n in enumerate(extents))


@lru_cache(maxsize=8192)
def pushed(loop: Layout, index: tuple[Index, ...], shape: Shape) -> Layout | None:
    """Layout that a buffer must have so that each thread holds what its iterations touch.

    None if the loop covers only part of the buffer, or the index is not digit-wise.
    """
    groups = grouped(loop)
    if groups is None or any(i.opaque or i.constant for i in index):
        return None
    dims: list[list[tuple[int, Iter]]] = [[] for _ in shape]
    dropped: list[Iter] = []
    for number, (group, extent) in enumerate(zip(groups, loop.shape, strict=True)):
        pieces = _side_by_side(
            group, extent, [(dim, d) for dim, i in enumerate(index) for d in i.digits if d.loop == number]
        )
        if pieces is None:
            return None
        for it, target in pieces:
            if target is not None:
                dims[target[0]].append((target[1], it))
            elif it.axis is Axis.THREAD and it.extent > 1:
                dropped.append(it)
    chains = [_chain(digits, extent) for digits, extent in zip(dims, shape, strict=True)]
    if any(c is None for c in chains):
        return None
    kept = [c for c in chains if c is not None]
    iters = _renumbered([i for c in kept for i in c])
    replicas = sorted((*loop.replicas, *dropped), key=lambda r: -r.stride)
    offset = tuple((a, o) for a, o in loop.offset if a is Axis.THREAD)
    return Layout(shape, iters, tuple(replicas), offset, box=tuple(prod(i.extent for i in c) for c in kept))


def _chain(digits: list[tuple[int, Iter]], extent: int) -> list[Iter] | None:
    """Digits of one buffer dimension, most significant first; they must cover it without gap or overlap."""
    place = 1
    for stride, it in sorted(digits, key=lambda d: (d[0], d[1].extent)):
        if it.extent == 1:
            continue
        if stride != place:
            return None
        place *= it.extent
    return [it for _, it in sorted(digits, key=lambda d: -d[0]) if it.extent > 1] if place >= extent else None


def _renumbered(iters: Sequence[Iter]) -> tuple[Iter, ...]:
    """Registers numbered by significance of their old stride."""
    order = sorted((k for k, i in enumerate(iters) if i.axis is Axis.REGISTER), key=lambda k: iters[k].stride)
    place, out = 1, list(iters)
    for k in order:
        out[k] = replace(iters[k], stride=place)
        place *= iters[k].extent
    return tuple(out)


def _side_by_side(
    group: Sequence[Iter], extent: int, digits: Sequence[tuple[int, Digit]]
) -> list[tuple[Iter, tuple[int, int] | None]] | None:
    """Pieces of one loop's digits, each with the (dimension, stride) of the index digit it drives, if any.

    An index digit that reaches the end of the loop goes on into the padding of the partition.
    """
    group = group or (Iter(1, 0, Axis.NONE),)
    cuts = {c for _, d in digits for c in (d.low, d.low * d.extent) if c < extent} | {1}
    fine = refined(group, sorted(cuts)) or top_split(group, sorted(cuts))
    if fine is None:
        return None
    out: list[tuple[Iter, tuple[int, int] | None]] = []
    for it, place in zip(fine, positions(fine), strict=True):
        hit = [
            (dim, d)
            for dim, d in digits
            if d.low <= place and (place < d.low * d.extent or d.low * d.extent >= extent)
        ]
        if len(hit) > 1 or any(place % d.low for _, d in hit):
            return None
        out.append((it, (hit[0][0], hit[0][1].stride * (place // hit[0][1].low)) if hit else None))
    return out


@lru_cache(maxsize=8192)
def pulled(buffer: Layout, index: tuple[Index, ...], extents: Shape) -> Layout | None:
    """Loop partition that makes each thread run the iterations whose element of ``buffer`` it holds."""
    if any(i.opaque for i in index):
        return None
    if any(i.constant < 0 for i in index):
        return None
    if any(i.constant for i in index):
        touched = tuple(1 + sum(d.top for d in i.digits) for i in index)
        part = cut(buffer, [i.constant for i in index], touched)
        return None if part is None else pulled(part, tuple(replace(i, constant=0) for i in index), extents)
    groups = grouped(buffer)
    if groups is None:
        return None
    pieces: list[tuple[int, int, Iter]] = []  # loop, place, iterator
    for group, i in zip(groups, index, strict=True):
        if (found := _of_buffer(group, i, extents)) is None:
            return None
        pieces += found
    iters: list[Iter] = []
    box: list[int] = []
    for number, extent in enumerate(extents):
        # two digits at one place, as of A[i // 8, i]: no partition, which _filled says
        own = sorted(((place, it) for n, place, it in pieces if n == number), key=lambda p: p[0])
        mine = _filled(own, extent)
        if mine is None:
            return None
        iters += mine
        box.append(prod(i.extent for i in mine))
    offset = tuple((a, o) for a, o in buffer.offset if a is not Axis.REGISTER)
    return Layout(extents, _serial(iters), buffer.replicas, offset, buffer.swizzle, tuple(box))


def _of_buffer(group: Sequence[Iter], index: Index, extents: Shape) -> list[tuple[int, int, Iter]] | None:
    """Where each digit of an index lands in the digits of its dimension.

    Only a digit that reaches the end of its loop may be rounded up when it is split; ``j % 3`` may not.
    """
    places = list(zip(group, positions(group), strict=True))
    out: list[tuple[int, int, Iter]] = []
    load = dict.fromkeys((p for _, p in places), 0)
    for d in index.digits:
        cuts = [p // d.stride for _, p in places if d.stride < p < d.stride * d.extent and p % d.stride == 0]
        if any(d.stride < p < d.stride * d.extent and p % d.stride for _, p in places):
            return None
        run = (Iter(d.extent, 1, Axis.INDEX),)
        fine = refined(run, cuts)
        if fine is None and d.low * d.extent >= extents[d.loop]:
            fine = top_split(run, cuts)
        if fine is None:
            return None
        for piece in fine:
            stride = d.stride * piece.stride
            at = next(((it, p) for it, p in places if p <= stride), None)
            if piece.extent == 1 or at is None or stride % at[1]:
                if piece.extent == 1:
                    continue
                return None
            it, p = at
            load[p] += (piece.extent - 1) * (stride // p)
            out.append((d.loop, d.low * piece.stride, Iter(piece.extent, it.stride * (stride // p), it.axis)))
    top = places[0][1] if places else 1
    limits = {p: it.extent for it, p in places}
    return None if any(load[p] >= limits[p] and p != top for p in load) else out


def _filled(pieces: Sequence[tuple[int, Iter]], extent: int) -> list[Iter] | None:
    """All digits of a loop: those given, and serial ones wherever no digit was given."""
    out: list[Iter] = []
    place = 1
    for low, it in pieces:
        if low < place or low % place:
            return None
        if low > place:
            out.append(Iter(low // place, 0, Axis.REGISTER))
        out.append(it)
        place = low * it.extent
    if place < extent:
        out.append(Iter(-(-extent // place), 0, Axis.REGISTER))
    return out[::-1]


def _serial(iters: Sequence[Iter]) -> tuple[Iter, ...]:
    """Number the iterations a thread runs: registers of a loop partition, in loop order."""
    out: list[Iter] = []
    place = 1
    for it in reversed(iters):
        if it.axis is Axis.REGISTER:
            it = Iter(it.extent, place, Axis.REGISTER)
            place *= it.extent
        out.append(it)
    return tuple(reversed(out))
