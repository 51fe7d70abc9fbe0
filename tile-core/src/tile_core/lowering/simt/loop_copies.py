"""The copies of a scheduled loop as the role that copies starts them, box by box."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ...expr import Expr, Load, Var, binary, substitute
from ...expr.walk import rebuilt
from ...inference.bulk import Piece
from ...program import Bind, Copy, Place, Stmt
from .telling import COPY

if TYPE_CHECKING:
    from .role_loop import RoleLoop


@dataclass
class LoopCopies:
    """``starts``: where the box of each copy begins in the present iteration. ``loaded``: numbers read for that, by iteration."""

    loop: RoleLoop
    starts: dict[str, list[Expr]] = field(default_factory=dict[str, "list[Expr]"])
    loaded: dict[tuple[Expr, Expr], Var] = field(default_factory=dict["tuple[Expr, Expr]", Var])

    def __post_init__(self) -> None:
        self.roles = self.loop.roles

    def start(self, op: str, iteration: Expr, instance: Expr) -> Iterator[Stmt]:
        """Start the boxes of one copy, part by part; the first copy of a token announces the bytes of all."""
        token = next(t for t in self.loop.schedule.tokens.values() if op in t.producers)
        copies = [s.op for s in self.loop.schedule.streams[COPY] if s.op in token.producers]
        size = sum(self.roles.context.plan.bulk[c].bytes for c in copies)
        pieces, parts = (
            self.roles.context.plan.bulk[op].pieces,
            self.roles.telling.parts(self.loop.name, token),
        )
        for part in range(parts):
            place = self.roles.signals.at(self.loop.name, token, instance, part)
            if op == copies[0]:
                yield self.roles.engines.expect(place, size // parts)
            some = slice(len(pieces) * part // parts, len(pieces) * (part + 1) // parts)
            yield from self.boxes(op, instance, place, pieces[some])

    def ahead(self, op: str, iteration: Expr) -> Iterator[Stmt]:
        """Before a copy waits for its slot it reads what says where it begins (a page's number), once in an iteration."""
        if self.loop.stream != COPY:
            return
        made: list[Stmt] = []

        def known(x: Expr) -> Expr:
            if not isinstance(x, Load):
                return x if isinstance(x, Var) else rebuilt(x, known)
            key = x, iteration
            if key not in self.loaded or not isinstance(iteration, Var):
                self.loaded[key] = Var("found", x.dtype, self.roles.context.unique("found"))
                made.append(Bind(self.loaded[key], x))
            return self.loaded[key]

        values = self.loop.values(iteration)
        self.starts[op] = [known(substitute(x, values)) for x in self.roles.context.plan.bulk[op].start]
        yield from made

    def boxes(self, op: str, instance: Expr, token: Place, pieces: Iterable[Piece]) -> Iterator[Stmt]:
        found, s, start = self.roles.context.plan.bulk[op], self.loop.ops[op], self.starts[op]
        assert isinstance(s, Copy)
        flat, slot = self.roles.ring(s.dst.buffer.storage, instance)
        shared = self.roles.sharing if self.roles.sharing and op in self.roles.sharing.copies else None
        many = shared.blocks if shared else 1
        rank = self.roles.walk.rank
        again = self.roles.again.get(op)
        hint = None if again is None else self.roles.hints[again]
        # beside tensors that are kept in a cache there is room for what a stream brings too much
        box = self.roles.box(found, many, again is False and not any(self.roles.again.values()))
        for piece in pieces:
            at = [binary("+", x, n) for x, n in zip(start, piece.shift, strict=True)]
            inside = binary("+", slot, piece.at)
            if many > 1 and found.rows is not None:
                part = found.box[found.rows] // many
                at[found.rows] = binary("+", at[found.rows], binary("*", rank, part))
                inside = binary("+", inside, binary("*", rank, part * found.box[-1]))
            into = Place(flat, (self.roles.context.simple(inside),), "w", window=True)
            yield self.roles.engines.load(
                box, [self.roles.context.simple(x) for x in at], into, token, many, hint
            )
