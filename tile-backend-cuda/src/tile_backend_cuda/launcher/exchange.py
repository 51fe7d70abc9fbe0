"""Types of tensors that the native launcher may view through DLPack's C exchange API."""

from __future__ import annotations

from typing import Any

NAME = "__dlpack_c_exchange_api__"


def exchange(kind: type) -> tuple[Any, Any] | None:
    """(the API's capsule, a function of a tensor that says its memory is not its value, or None); None: view it in Python.

    A subclass that answers for its operations itself (wrappers, fakes) has no memory that a view shows.
    """
    owner = next((base for base in kind.__mro__ if NAME in vars(base)), None)
    if owner is None:
        return None
    dispatch = "__torch_dispatch__"
    if getattr(kind, dispatch, None) is not getattr(owner, dispatch, None):
        return None
    return vars(owner)[NAME], getattr(owner, "is_neg", None)
