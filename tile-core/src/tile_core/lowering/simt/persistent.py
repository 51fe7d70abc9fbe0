"""Which tiles a block works on, and in which order: one block for each core walks over all tiles, near ones at the same time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod, sqrt

from ...dtypes import INT32
from ...expr import Expr, Var, binary, ceildiv, const, dim, select, variables
from ...expr.intervals import Interval
from ...inference.sharing import Sharing
from ...program import Bind, Launch, Stmt
from .barriers import UniformFor
from .context import Context
from .deal import Deal

Extent = int | Expr
EVERY = 1 << 31  # blocks: more than a grid has
ZERO = const(0)


@dataclass(frozen=True)
class Walk:
    """``vars`` and ``grid`` are those of the new launch. ``repeats``: whether a block may have several tiles.

    ``falling``: a block number of the user's that is counted down. ``turn``: how many tiles this block had before.
    ``deal``: which tiles each block works on, where their number alone does not say. ``rotating``: a block has another place in
    each turn, so that tiles with more work, which come at regular distances, are not all one block's.
    """

    context: Context
    launch: Launch
    vars: tuple[Var, ...]
    grid: tuple[Extent, ...]
    repeats: bool
    total: Extent
    panel: int
    sharing: Sharing | None = None
    falling: Var | None = None
    turn: Expr = ZERO
    deal: Deal | None = None
    rotating: bool = False

    def around(self, body: Sequence[Stmt]) -> tuple[Stmt, ...]:
        """``body`` for every tile of this block."""
        (block,), (blocks,) = self.vars, self.grid
        if self.sharing is not None:
            block, blocks = binary("//", block, self.sharing.blocks), _fewer(blocks, self.sharing.blocks)
        if not isinstance(self.turn, Var):
            return (*self.numbers(block), *body)
        at = self.context.var("number", EVERY)
        if self.deal is None:
            number = self.context.simple(
                binary("+", self.place(block, blocks), binary("*", self.turn, blocks))
            )
            turns = dim(ceildiv(binary("-", self.total, block), blocks))
        else:
            number, turns = self.deal.tile(block, self.turn), self.deal.count(block)
        inner = (Bind(at, number), *self.numbers(at), *body)
        return (UniformFor(self.turn, const(0), turns, inner, span=self.launch.span),)

    def place(self, block: Expr, blocks: Extent) -> Expr:
        """Which of the tiles of a turn a block takes: the same always, or each time the next one, while turns are whole."""
        if not self.rotating:
            return block
        shifted = binary("truncmod", binary("+", block, self.turn), blocks)
        return select(binary("<", self.turn, binary("//", self.total, blocks)), shifted, block, lazy=False)

    def numbers(self, at: Expr) -> tuple[Stmt, ...]:
        """The user's block numbers of tile number ``at``. Panels of ``panel`` rows are walked column by column, there and back."""
        vars, grid = list(self.launch.vars), list(self.launch.grid)
        after: tuple[Stmt, ...] = ()
        if self.sharing is not None:
            n, many = vars.index(self.sharing.var), self.sharing.blocks
            vars[n], grid[n] = self.context.var("pair", 1 << 31), _fewer(grid[n], many)
            mine = binary("+", binary("*", vars[n], many), self.rank)
            after = (Bind(self.sharing.var, mine),)
        found = (*self.unshared(at, vars, grid), *after)
        return tuple(self.down(s) if isinstance(s, Bind) and s.var == self.falling else s for s in found)

    def down(self, s: Bind) -> Bind:
        """The number that was bound, from the other end."""
        extent = self.launch.grid[self.launch.vars.index(s.var)]
        return Bind(s.var, self.context.simple(binary("-", binary("-", extent, 1), s.value)))

    @property
    def rank(self) -> Expr:
        """This block's number among those that share copies."""
        return binary("%", self.vars[0], self.sharing.blocks if self.sharing else 1)

    def unshared(self, at: Expr, vars: Sequence[Var], grid: Sequence[Extent]) -> tuple[Stmt, ...]:
        if len(vars) == 1:
            return (Bind(vars[0], at),)
        out: list[Stmt] = []
        columns, rows = grid[0], grid[1]
        if len(vars) > 2:
            plane = binary("*", columns, rows)
            out.append(Bind(vars[2], self.context.simple(binary("truncdiv", at, plane))))
            at = binary("truncmod", at, plane)
        if self.panel == 1:
            out += [
                Bind(vars[0], binary("truncmod", at, columns)),
                Bind(vars[1], binary("truncdiv", at, columns)),
            ]
            return tuple(out)
        panel, inside, height = (self.context.var(n, 1 << 31) for n in ("panel", "inside", "height"))
        each = self.context.simple(binary("*", columns, self.panel))
        first = binary("*", panel, self.panel)
        left = binary("-", rows, first)
        whole = isinstance(rows, int) and rows % self.panel == 0
        column = binary("truncdiv", inside, height)
        back = binary("-", binary("-", columns, 1), column)
        odd = binary("==", binary("truncmod", panel, 2), 1)
        return (
            *out,
            Bind(panel, binary("truncdiv", at, each)),
            Bind(inside, binary("truncmod", at, each)),
            Bind(height, const(self.panel) if whole else binary("min", left, self.panel)),
            Bind(vars[1], binary("+", first, binary("truncmod", inside, height))),
            Bind(vars[0], select(odd, back, column, lazy=False)),
        )


def _fewer(n: Extent, parts: int) -> Extent:
    return n // parts if isinstance(n, int) else binary("//", n, parts)


def walk(
    context: Context,
    launch: Launch,
    sharing: Sharing | None = None,
    resident: int | None = 1,
    falling: Var | None = None,
    deal: Deal | None = None,
    rotating: bool = False,
) -> Walk:
    """The walk of a launch: ``resident`` blocks for each core that the target has, or one for each tile if these are fewer.

    Without ``resident`` there is a block for each tile. With ``deal`` there are as many as it deals to.
    """
    many = sharing.blocks if sharing else 1
    cores = EVERY if resident is None else context.plan.info.cores * resident // many
    grid = [
        _fewer(g, many) if sharing and v == sharing.var else g
        for v, g in zip(launch.vars, launch.grid, strict=True)
    ]
    block = Var("block", INT32, 902)
    known = [g for g in grid if isinstance(g, int)]
    if len(known) == len(grid):
        total: Extent = prod(known)
        blocks: Extent = min(prod(known), cores) * many
        repeats = prod(known) > cores
    else:
        product: Expr = const(1)
        for g in grid:
            product = binary("*", product, g)
        total, blocks, repeats = (
            context.simple(product),
            binary("*", binary("min", product, cores), many),
            True,
        )
    context.ranges[block] = Interval(0, cores * many - 1)
    if deal is not None:
        blocks, repeats = deal.blocks, True
    turn = context.var("turn", EVERY) if repeats else ZERO
    panel = 1 if deal else _panel(context, launch, sharing)
    return Walk(
        context, launch, (block,), (blocks,), repeats, total, panel, sharing, falling, turn, deal, rotating
    )


def _panel(context: Context, launch: Launch, sharing: Sharing | None) -> int:
    """Rows of tiles in a panel, so that tiles which run at one time read as little as possible: nearly a square of bytes.

    Rows of blocks that share copies along rows count as one.
    """
    if len(launch.grid) < 2:
        return 1
    if launch.swizzle is not None:
        return max(1, launch.swizzle[0])
    across = _bytes(context, launch.vars[0], launch.vars)
    down = _bytes(context, launch.vars[1], launch.vars)
    if not across or not down:
        return 1
    wanted = sqrt(context.plan.info.cores * across / down)
    rows = launch.grid[1]
    if sharing is not None and sharing.var == launch.vars[1]:
        wanted, rows = wanted / sharing.blocks, _fewer(rows, sharing.blocks)
    best = 1 << max(0, round(wanted).bit_length() - 1)
    return max(1, min(best, rows)) if isinstance(rows, int) else best


def _bytes(context: Context, var: Var, block: Sequence[Var]) -> int:
    """Bytes that one iteration copies which depend on ``var`` and on no other block number."""
    others = {v for v in block if v != var}
    out = 0
    for copy in context.plan.bulk.values():
        used = {v for x in copy.start for v in variables(x)}
        if var in used and not used & others:
            out += copy.bytes
    return out
