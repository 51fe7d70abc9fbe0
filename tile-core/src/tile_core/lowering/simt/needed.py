"""When a step of a scheduled loop has anything to do, where that is not always: masks, and accumulators that are filled first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from ...expr import Expr, Var, binary, substitute
from ...inference.problem import is_whole
from ...program import Gemm, Stmt
from ...program.visit import touched_storages
from .barriers import UniformIf
from .edges import holds_from
from .masked import beyond_zeros, changes

if TYPE_CHECKING:
    from .role_loop import RoleLoop


@dataclass
class Needed:
    """``acting``: whether the step with a mask has something to do in what is lowered next; None: it may have."""

    loop: RoleLoop
    acting: bool | None = None

    @cached_property
    def masks(self) -> dict[str, Expr]:
        """Steps that change a tile only under a condition."""
        own = ((op, s) for op, s in self.loop.ops.items() if self.loop.ops_stream(op) == self.loop.stream)
        return {op: c for op, s in own if (c := changes(self.loop.context, s)) is not None}

    def masked_from(self, step: Var) -> Expr | None:
        """The kernel step from which on the one step with a mask has something to do; None: it is asked at each."""
        if not self.loop.computes or len(self.masks) != 1 or self.loop.roles.crew.teams is not None:
            return None  # a second loop for each team would double what is compiled
        ((op, condition),) = self.masks.items()
        iteration = binary("-", step, self.loop.schedule.step(op).stage)
        return holds_from(
            self.loop.context,
            self.loop.context.simple(substitute(condition, self.loop.values(iteration))),
            step,
        )

    def seldom(self, acting: bool | None) -> None:
        """Whether the step with a mask has something to do in what is lowered next; None: it may have."""
        self.acting = acting

    @cached_property
    def when(self) -> dict[str, Expr]:
        """When a step has anything to do, where that is not always; of a product: when its accumulator is not begun by it."""
        out: dict[str, Expr] = {}
        if not self.loop.computes:
            return out
        out |= self.masks
        return out if self.loop.roles.sums else {**out, **dict(self._begun())}

    def _begun(self) -> Iterator[tuple[str, Expr]]:
        """Steps that fill an accumulator just before its product, and the product."""
        steps = list(self.loop.ops.items())
        for n, (op, s) in enumerate(steps):
            if (
                not isinstance(s, Gemm)
                or s.clear
                or not self.loop.roles.on_engine(op)
                or s.c.buffer in self.loop.fresh()
            ):
                continue
            users = [(x, t) for x, t in steps[:n] if s.c.buffer.storage in touched_storages(t)]
            if not users or not is_whole(s.c):
                continue
            more = beyond_zeros(self.loop.context, users[-1][1], s.c.buffer)
            if more is not None:
                yield users[-1][0], more
                yield op, more

    def where(self, op: str, body: Iterable[Stmt], values: dict[Var, Expr]) -> Iterable[Stmt]:
        """The statements of a step, for the tiles for which there is anything to do."""
        if op not in self.when or (op in self.masks and self.acting):
            return body
        if op in self.masks and self.acting is False:
            return ()
        more = self.loop.context.simple(substitute(self.when[op], values))
        known = getattr(more, "value", None)
        return body if known is True else () if known is False else (UniformIf(more, tuple(body)),)
