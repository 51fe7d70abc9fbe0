"""Obligations of the code that is emitted: who arrives at tokens, and fences between threads and engines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..span import Span
from .heard import Emitted, Words
from .sites import Arrival, Sites, Told


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a token or tile of a launch, in words, and where in the user's program."""

    text: str
    span: Span | None = None


def miscounted(emitted: Emitted, sites: Sites) -> Iterator[Fault]:
    """Tokens at which not as many threads arrive as are awaited, or as the plan says."""
    for t in emitted.tokens:
        awaited = {emitted.counts.get(w) for w in range(t.first, t.first + t.count)}
        if awaited != {t.arrivals}:
            yield Fault(
                f"{_named(t)} awaits {_one(awaited)} arrivals, and {t.arrivals} are told of in the plan"
            )
        yield from _arriving(sites, t)
    loops = dict.fromkeys(t.loop for t in emitted.tokens if t.beside)
    for loop in loops:
        yield from _beside(sites, [t for t in emitted.tokens if t.loop == loop and t.beside])


def _beside(sites: Sites, tokens: Sequence[Words]) -> Iterator[Fault]:
    """The partial steps of a loop bring what those of one number of iterations do, for all of its tokens."""
    found = {t.name: _outside(sites, t) for t in tokens}
    likely = max(
        range(len(tokens[0].beside)), key=lambda n: sum(t.beside[n] == found[t.name] for t in tokens)
    )
    for t in tokens:
        if t.beside[likely] != found[t.name]:
            awaited = f"{t.beside[likely]} are awaited"
            yield Fault(f"{found[t.name]} threads arrive at {_named(t)} beside its loop, {awaited}")


def _outside(sites: Sites, t: Words) -> int:
    told = [(x.depth, a.threads) for x in sites.arrivals for a in x.arrivals if t.has(a.word)]
    innermost = max((depth for depth, _ in told), default=0)
    return sum(threads for depth, threads in told if depth < innermost)


def _arriving(sites: Sites, t: Words) -> Iterator[Fault]:
    """An iteration of the innermost loop brings all arrivals of one instance; outside of it stand some of those of others."""
    told = [
        Told(x.depth, x.who, own) for x in sites.arrivals if (own := [a for a in x.arrivals if t.has(a.word)])
    ]
    innermost = max((x.depth for x in told), default=0)
    if not told:
        yield Fault(f"nobody arrives at {_named(t)}, {t.arrivals} are awaited")
    elif t.beside and not innermost:
        yield Fault(
            f"nobody arrives at {_named(t)} in its loop, {t.arrivals} are awaited", told[0].arrivals[0].span
        )
    elif t.beside and (lacking := _lacking(sites, t, innermost)):
        yield Fault(f"nobody arrives at {_named(t)} where its loop goes another way", lacking[0].span)
    parts = {(a.word - t.first) % t.parts for x in told for a in x.arrivals}
    if told and len(parts) < t.parts:
        text = f"{len(parts)} parts of {_named(t)} are told, {t.parts} are awaited"
        yield Fault(text, told[0].arrivals[0].span)
    inside = {a.threads for x in told if x.depth == innermost for a in x.arrivals}
    if innermost:
        yield from _counted([x for x in told if x.depth == innermost], t)
    for x in told:
        for a in x.arrivals if x.depth < innermost or not x.depth else ():
            if a.threads not in (inside if innermost else {t.arrivals}):
                yield Fault(f"{a.threads} threads arrive at {_named(t)}, {t.arrivals} are awaited", a.span)


def _counted(told: Sequence[Told], t: Words) -> Iterator[Fault]:
    """Loops in which not all arrivals come together: its own, and those of other threads' loops of the same iterations."""
    first = {x.who: _by_word(x.arrivals) for x in reversed(told)}
    for x in told:
        others = sum((found for who, found in first.items() if who != x.who), Counter[int]())
        for word, own in _by_word(x.arrivals).items():
            total = own + others[word]
            if total != t.arrivals * t.spread:
                text = f"{total} threads arrive at {_named(t)} (word {word}), {t.arrivals} are awaited"
                yield Fault(text, x.arrivals[0].span)


def _lacking(sites: Sites, t: Words, depth: int) -> list[Arrival]:
    """What threads tell in a loop that does not tell a token, and in another one of theirs that does: both are ways of one loop."""
    loops = [x for x in sites.arrivals if x.depth == depth]
    telling = [x for x in loops if any(t.has(a.word) for a in x.arrivals)]
    beside = {(x.who, a.word) for x in telling for a in x.arrivals}
    ways = (x for x in loops if x not in telling)
    return next((x.arrivals for x in ways if beside & {(x.who, a.word) for a in x.arrivals}), list[Arrival]())


def _by_word(found: list[Arrival]) -> Counter[int]:
    out: Counter[int] = Counter()
    for a in found:
        out[a.word] += a.threads
    return out


def unfenced(emitted: Emitted, sites: Sites) -> Iterator[Fault]:
    """Tiles that threads accessed and an engine reads or writes next, with no fence on the way."""
    for u in sites.unfenced:
        done = "written" if u.wrote else "read"
        yield Fault(
            f"{u.tile.name} was {done} by threads, and {u.by_engine} comes after it with no fence between",
            u.span,
        )
    seen: set[str] = set()
    for x in sites.arrivals:
        for a in x.arrivals:
            t = emitted.at(a.word)
            for text in _told_open(emitted, t, a) if t is not None else ():
                if text not in seen:
                    seen.add(text)
                    yield Fault(text, a.span)


def _told_open(emitted: Emitted, t: Words, a: Arrival) -> Iterator[str]:
    for tile in sorted(t.tiles, key=lambda b: b.name):
        if any(x == tile or x in emitted.sharing.get(tile, ()) for x, _ in a.before.alone):
            yield f"{tile.name} is told of by {_named(t)} before the threads of a subgroup that used it have met"
    for tile in sorted(t.reads | t.writes, key=lambda b: b.name):
        for access, word in ("w", "written"), ("r", "read"):
            if access == "r" and tile not in t.writes:
                continue
            same = {(x, access) for x in (tile, *emitted.sharing.get(tile, ()))}
            if same & a.before.open:
                yield f"{tile.name} was {word} by threads, and {_named(t)} tells an engine so with no fence before"


def _named(t: Words) -> str:
    return f"token {t.name} of {t.loop}"


def _one(found: set[int | None]) -> str:
    return " or ".join("no" if n is None else str(n) for n in sorted(found, key=lambda n: n or 0))
