"""Every error a user can meet. Each says what is wrong, where, why, and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from .span import Span


class TileError(Exception):
    """Base of all errors of the package.

    ``span`` is where the user's text is wrong; ``why`` the rule that was broken; ``help`` what to do;
    ``related`` further places with a word on each.
    """

    kind = "error"

    def __init__(
        self,
        message: str,
        span: Span | None = None,
        *,
        why: str = "",
        help: str = "",
        related: Iterable[tuple[str, Span]] = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        self.span = span
        self.why = why
        self.help = help
        self.related = tuple(related)

    def __str__(self) -> str:
        lines = [self.message if self.span is None else f"{self.kind}: {self.message}"]
        if self.span is not None:
            lines.append(self.span.snippet())
        lines += [span.snippet(label) for label, span in self.related]
        if self.why:
            lines.append(f"   = why:  {self.why}")
        if self.help:
            lines.append(f"   = help: {self.help}")
        return "\n".join(lines)

    def at(self, span: Span | None) -> TileError:
        """The same error, placed at ``span`` if it had no place yet."""
        if self.span is None:
            self.span = span
        return self


class KernelError(TileError):
    """The user's kernel is wrong."""


class ArgumentError(KernelError):
    """A kernel was called with an argument that does not fit its signature. The message names the argument."""


class Unsupported(TileError):
    """The kernel is right, but this target, or this version, cannot do it."""

    kind = "unsupported"


class BackendError(TileError, RuntimeError):
    """A backend cannot be used; the message says what to do about it."""


class BackendNotFound(BackendError, LookupError):
    """No installed package provides the backend."""


class BackendLoadFailed(BackendError):
    """The backend's package is installed but does not load."""


class BackendIncompatible(BackendError):
    """The backend was written for another version of the backend interface."""


class BackendConflict(BackendError):
    """Two installed packages provide a backend of the same name."""


class NoDevice(BackendError):
    """The backend is there, but no device of it is."""


class InternalError(TileError):
    """A fault of tile itself: please report it with the folder named in the message."""

    kind = "internal error"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``did you mean 'x'?`` for the nearest known name, or an empty string."""
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"did you mean {near[0]!r}?" if near else ""
