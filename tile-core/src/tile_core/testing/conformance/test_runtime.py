"""Level 4: calls on a device as users make them: many, of several shapes, from threads, wrong ones, on streams, from bundles."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tile_core.errors import TileError
from tile_core.hardware import Device
from tile_core.runtime import compile, load
from tile_core.testing import residence
from tile_core.testing.kernels import dynamic, gemm, softmax

CALLS, THREADS = 20, 4
M, N = 20, 64


def numbers(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def doubled(kernel: Callable[..., Any], device: Device, m: int, n: int, seed: int) -> None:
    """Call the kernel that doubles, and check what it gave."""
    a = numbers(seed, m, n)
    held, out = residence.put(a, device), residence.put(np.zeros_like(a), device)
    kernel(held, out)
    np.testing.assert_array_equal(residence.get(out), 2 * a)
    np.testing.assert_array_equal(residence.get(held), a)


@pytest.fixture
def doubling(tile_device: Device) -> Callable[..., Any]:
    return compile(dynamic(16, "float32"), target=tile_device.target)


@pytest.mark.l4
@pytest.mark.conformance
def test_many_calls(tile_device: Device, doubling: Callable[..., Any]) -> None:
    for seed in range(CALLS):
        doubled(doubling, tile_device, M, N, seed)


@pytest.mark.l4
@pytest.mark.conformance
def test_dimensions_of_each_call(tile_device: Device, doubling: Callable[..., Any]) -> None:
    for seed, (m, n) in enumerate([(16, 16), (1, 1), (33, 7), (0, 5), (5, 0), (100, 130), (16, 16)]):
        doubled(doubling, tile_device, m, n, seed)


@pytest.mark.l4
@pytest.mark.conformance
def test_calls_in_a_row_without_waiting(tile_device: Device, doubling: Callable[..., Any]) -> None:
    """Each call reads what the one before wrote; nobody looks in between."""
    a = numbers(0, M, N)
    here, there = residence.put(a, tile_device), residence.put(np.zeros_like(a), tile_device)
    for _ in range(CALLS // 2):
        doubling(here, there)
        doubling(there, here)
    np.testing.assert_array_equal(residence.get(here), a * 2.0**CALLS)


@pytest.mark.l4
@pytest.mark.conformance
def test_threads_share_a_kernel(tile_device: Device, doubling: Callable[..., Any]) -> None:
    """The first calls of all threads too: one of them compiles and loads."""
    with ThreadPoolExecutor(THREADS) as pool:
        jobs = [pool.submit(doubled, doubling, tile_device, M + k % THREADS, N, k) for k in range(CALLS)]
        for job in jobs:
            job.result()


@pytest.mark.l4
@pytest.mark.conformance
def test_kernels_take_turns(tile_device: Device, doubling: Callable[..., Any]) -> None:
    types = ("float32", "float32", "float32")
    product = compile(gemm(32, 32, 32, (32, 32, 32), types, precision="ieee"), target=tile_device.target)
    rows = compile(softmax(M, N, 16, "float32"), target=tile_device.target)
    for seed in range(3):
        a, b, x = numbers(seed, 32, 32), numbers(seed + 1, 32, 32), numbers(seed + 2, M, N)
        c, y = (residence.put(np.zeros_like(v), tile_device) for v in (a, x))
        product(residence.put(a, tile_device), residence.put(b, tile_device), c)
        rows(residence.put(x, tile_device), y)
        doubled(doubling, tile_device, M, N, seed)
        np.testing.assert_allclose(residence.get(c), a @ b, rtol=1e-4, atol=1e-4)
        e = np.exp(x - x.max(axis=1, keepdims=True))
        np.testing.assert_allclose(residence.get(y), e / e.sum(axis=1, keepdims=True), rtol=1e-4, atol=1e-6)


@pytest.mark.l4
@pytest.mark.conformance
def test_outputs_are_allocated(tile_device: Device) -> None:
    kernel = compile(dynamic(16, "float32"), out_idx=[-1], target=tile_device.target)
    a = numbers(0, M, N)
    given = residence.put(a, tile_device)
    first, second = kernel(given), kernel(given)
    assert type(first) is type(given)
    for out in (first, second):
        np.testing.assert_array_equal(residence.get(out), 2 * a)


@pytest.mark.l4
@pytest.mark.conformance
def test_a_wrong_call_harms_nothing(tile_device: Device, doubling: Callable[..., Any]) -> None:
    a, b = (
        residence.put(numbers(0, M, N), tile_device),
        residence.put(np.zeros((M, N + 1), np.float32), tile_device),
    )
    with pytest.raises(TileError, match="B"):
        doubling(a, b)
    with pytest.raises(TileError, match="2 arguments"):
        doubling(a)
    np.testing.assert_array_equal(residence.get(b), 0)
    doubled(doubling, tile_device, M, N, 1)


@pytest.mark.l4
@pytest.mark.conformance
def test_the_callers_stream(tile_device: Device, doubling: Callable[..., Any]) -> None:
    """Calls are ordered with what else the caller does on its stream, and only there."""
    streams = residence.streams(tile_device)
    if streams is None:
        pytest.skip("tensors of this device have no streams")
    a = numbers(0, 1024, 1024)
    held, out = residence.put(a, tile_device), residence.put(np.zeros_like(a), tile_device)
    other = streams.Stream()
    other.wait_stream(streams.current_stream())
    with streams.stream(other):
        for _ in range(4):
            held.mul_(2)
            doubling(held, out)
            held.copy_(out)
    streams.current_stream().wait_stream(other)
    np.testing.assert_array_equal(residence.get(out), a * 4.0**4)


@pytest.mark.l4
@pytest.mark.conformance
def test_bundle(tile_device: Device, doubling: Any, tmp_path: Path) -> None:
    """What was exported runs without this kernel."""
    doubling.export(tmp_path)
    doubled(load(tmp_path), tile_device, M, N, 0)
