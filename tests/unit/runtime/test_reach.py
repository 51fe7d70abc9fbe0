"""Which tensors a backend may be given, and what its kernels are called with."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tile_core.errors import ArgumentError
from tile_core.runtime.calling import objects
from tile_core.runtime.reach import reachable
from tile_core.select import HOST, TensorDevice

OWN = {"name": "red", "torch_devices": (("red", False),), "dlpack_devices": (77,)}


def backend(**more: Any) -> Any:
    return SimpleNamespace(**OWN, **more)


@pytest.mark.parametrize("host", [False, True])
def test_its_own_devices(host: bool) -> None:
    for where in (None, TensorDevice(("red", False)), TensorDevice(dlpack=77)):
        reachable(backend(host_tensors=host), where)


def test_the_hosts_memory_where_the_backend_says_so() -> None:
    reachable(backend(host_tensors=True), HOST)
    with pytest.raises(ArgumentError):
        reachable(backend(host_tensors=False), HOST)


def test_another_vendors_memory_never() -> None:
    with pytest.raises(ArgumentError):
        reachable(backend(host_tensors=True), TensorDevice(("green", False)))


def test_tensors_in_place_of_their_addresses() -> None:
    a, b = np.zeros(3), np.zeros(4)
    assert objects((a, 7, b), (100, 7, 200, 3, 4)) == (a, 7, b, 3, 4)
