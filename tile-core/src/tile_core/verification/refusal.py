"""At compile time: a refuted obligation is an error, the counterexample. What is asked is for the setting ``verify`` to say."""

from __future__ import annotations

from collections.abc import Iterable

from .. import settings
from ..errors import InternalError
from .plans import FAILED, Obligation

LARGE = 2000  # statements and ops; below, an obligation takes a small part of the time that it takes to compile as many


def refuse(obligations: Iterable[Obligation]) -> None:
    """Ask obligations, as many as the setting wants.

    Raises:
        TileError: one is refuted; the error is its counterexample.
    """
    wanted = settings.current().verifying
    if wanted == settings.NEVER:
        return
    for o in obligations:
        if wanted == settings.AUTO and (o.deep or o.size > LARGE):
            continue
        answer = o.ask()
        if answer.status == FAILED:
            raise answer.against or InternalError(f"{o.what} is not so of {o.of}: {answer.detail}")
