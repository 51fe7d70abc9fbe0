"""The question for the Mac's GPU, with the Objective-C runtime and the framework replaced."""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from tile_backend_metal import probe


class Mac:
    """``families``: what the GPU says it supports; ``gpu``: the handle of the default device."""

    def __init__(self) -> None:
        self.families: set[int] = set(range(1001, 1010))
        self.gpu = 4711
        self.loaded: list[str] = []

    def load(self, name: str) -> Any:
        """A device is found only where CoreGraphics was loaded first."""
        self.loaded.append(name)
        ready = any("CoreGraphics" in n for n in self.loaded)
        return SimpleNamespace(MTLCreateSystemDefaultDevice=lambda: self.gpu if ready else 0)

    def send(self, objc: Any, receiver: int, selector: str, *arguments: Any, result: Any = None) -> Any:
        assert receiver
        match selector:
            case "supportsFamily:":
                return arguments[0][1] in self.families
            case "UTF8String":
                return b"Apple M4"
            case "recommendedMaxWorkingSetSize":
                return 2**34
            case _:
                return receiver + 1


@pytest.fixture
def mac(monkeypatch: pytest.MonkeyPatch) -> Iterator[Mac]:
    made = Mac()
    monkeypatch.setattr(probe, "on_mac", lambda: True)
    monkeypatch.setattr(probe, "_send", made.send)
    monkeypatch.setattr(ctypes, "CDLL", made.load)
    monkeypatch.setattr(platform, "mac_ver", lambda: ("15.1", ("", "", ""), "arm64"))
    monkeypatch.setattr(probe.util, "find_library", lambda name: name)
    probe.devices.cache_clear()
    yield made
    probe.devices.cache_clear()


def test_an_m4(mac: Mac) -> None:
    (found,) = probe.devices()
    assert str(found.target) == "metal:apple9"
    assert (found.name, found.driver, found.memory, found.torch) == ("Apple M4", "macOS 15.1", 2**34, "mps:0")


def test_a_family_that_is_newer_than_the_facts(mac: Mac) -> None:
    mac.families |= {1010, 1011}
    assert str(probe.devices()[0].target) == "metal:apple10"


def test_a_gpu_that_is_too_old_or_of_another_maker(mac: Mac) -> None:
    mac.families = {1005}
    assert probe.devices() == ()


def test_no_gpu(mac: Mac) -> None:
    mac.gpu = 0
    assert probe.devices() == ()


def test_a_framework_that_does_not_load(mac: Mac, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", missing)
    assert probe.devices() == ()
