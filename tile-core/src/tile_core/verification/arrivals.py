"""Obligations of the code that is emitted: who arrives at tokens, and fences between threads and engines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..span import Span
from .heard import Emitted, Words
from .sites import Arrival, Sites


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
        yield from _beside(sites, [t for t in emitted.tokens if t.loop == loop])


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
    told = [(depth, a.threads) for depth, own in sites.arrivals for a in own if t.has(a.word)]
    innermost = max((depth for depth, _ in told), default=0)
    return sum(threads for depth, threads in told if depth < innermost)


def _arriving(sites: Sites, t: Words) -> Iterator[Fault]:
    """An iteration of the innermost loop brings all arrivals of one instance; outside of it stand some of those of others."""
    told = [(depth, own) for depth, found in sites.arrivals if (own := [a for a in found if t.has(a.word)])]
    innermost = max((depth for depth, _ in told), default=0)
    if not told:
        yield Fault(f"nobody arrives at {_named(t)}, {t.arrivals} are awaited")
    elif t.beside and not innermost:
        yield Fault(
            f"nobody arrives at {_named(t)} in its loop, {t.arrivals} are awaited", told[0][1][0].span
        )
    elif t.beside and (lacking := _lacking(sites, t, innermost)):
        yield Fault(f"nobody arrives at {_named(t)} where its loop goes another way", lacking[0].span)
    inside = {a.threads for depth, own in told if depth == innermost for a in own}
    for depth, own in told:
        for word, total in _by_word(own).items() if depth == innermost and depth else ():
            if total != t.arrivals:
                text = f"{total} threads arrive at {_named(t)} (word {word}), {t.arrivals} are awaited"
                yield Fault(text, own[0].span)
        for a in own if depth < innermost or not depth else ():
            if a.threads not in (inside if innermost else {t.arrivals}):
                yield Fault(f"{a.threads} threads arrive at {_named(t)}, {t.arrivals} are awaited", a.span)


def _lacking(sites: Sites, t: Words, depth: int) -> list[Arrival]:
    """What is told in a loop that does not tell a token, and in another one that does: both are ways of one loop."""
    loops = [found for at, found in sites.arrivals if at == depth]
    beside = {a.word for found in loops if any(t.has(a.word) for a in found) for a in found}
    ways = (found for found in loops if not any(t.has(a.word) for a in found))
    return next((found for found in ways if beside & {a.word for a in found}), list[Arrival]())


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
    for _, found in sites.arrivals:
        for a in found:
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
