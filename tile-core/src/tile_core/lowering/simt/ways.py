"""The way of a block through the tiles of the grid, for launches that are split over roles."""

from __future__ import annotations

from collections.abc import Sequence

from ...program import For, Launch
from .context import Context
from .persistent import Walk, walk
from .uneven import deal, has_many, lengths, rising, varying


def way(context: Context, launch: Launch, loops: Sequence[For], ahead: bool, blocks: int) -> Walk:
    """The way, where copies may run ahead and so many blocks are at work on a core.

    A block whose copies run ahead goes on to its next tile without a pause. Others are better replaced by the next one, and so are
    blocks of which some have much more to do: who gets the next tile is then not known before.
    """
    number = next(n for n, s in enumerate(context.plan.program.launches) if s is launch)
    sharing = context.plan.sharing.get(number)
    even = next(lengths(launch, loops), None) is None
    first, differs = rising(context, launch, loops), varying(context, launch, loops)
    dealt = deal(context, launch, loops, differs, blocks) if ahead and sharing is None else None
    many = sharing is None and has_many(context, launch, blocks)
    return walk(
        context,
        launch,
        sharing,
        blocks if ahead and (even or many) else None,
        None if dealt or many else first,
        dealt,
        rotating=not even and dealt is None and many,
    )
