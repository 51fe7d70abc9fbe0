"""Which target is chosen, with backends and devices that are made up."""

from __future__ import annotations

import pytest

from tile_core import settings
from tile_core.backend import API, FactsOnly
from tile_core.errors import BackendNotFound, KernelError, Unsupported
from tile_core.hardware import Device, MemorySpace, Target, TargetInfo
from tile_core.registry import Registry
from tile_core.select import TensorDevice, choose, target


def info(name, arch):
    return TargetInfo(
        Target(name, arch),
        spaces=(MemorySpace("global", 1, 1, "grid"),),
        engines=(),
        tokens=(),
        subgroup=1,
        max_threads=1,
        dtypes=frozenset(),
        atoms=(),
        peaks={},
        cores=1,
        clock=1.0,
    )


def backend(name, *, archs=("a", "b"), here=(), **facts):
    devices = tuple(Device(Target(name, arch), index, f"{name} {index}") for index, arch in enumerate(here))
    methods = {"targets": lambda self: tuple(info(name, a) for a in archs), "devices": lambda self: devices}
    return type(name, (FactsOnly,), {"name": name, "api": API, **methods, **facts})()


class Embedded(Registry):
    """One in which ``cpu`` counts as tile-core's own."""

    def embedded(self, name):
        return name == "cpu"

    def names(self):
        return tuple(sorted(super().names(), key=lambda n: n != "cpu"))


def registry(*backends):
    made = Embedded(lambda: ())
    for each in (
        backend("cpu", archs=("host",), here=("host",), dlpack_devices=(1,), torch_devices=(("cpu", False),)),
        *backends,
    ):
        made.add(each)
    return made


GREEN = {"torch_devices": (("cuda", False),), "dlpack_devices": (2,)}
RED = {"torch_devices": (("cuda", True),), "dlpack_devices": (10,)}


def chosen(known, *args, **kwargs):
    return str(choose(*args, backends=known, **kwargs))


def test_order():
    known = registry(backend("one", here=("b",), **GREEN), backend("two"))
    assert chosen(known, "two:b") == "two:b"
    assert chosen(known) == "one:b"
    with settings.scope(target="two"):
        assert chosen(known) == "two:a"
        with target("cpu"):
            assert chosen(known) == "cpu:host"
            assert chosen(known, "one") == "one:b"
        assert chosen(known) == "two:a"


def test_variable(monkeypatch):
    monkeypatch.setenv("TILE_TARGET", "two:b,fast=1")
    assert chosen(registry(backend("two"))) == "two:b,fast=1"


def test_device_of_the_tensors():
    known = registry(backend("green", **GREEN), backend("red", **RED))
    assert chosen(known, tensors=TensorDevice(("cuda", False))) == "green:a"
    assert chosen(known, tensors=TensorDevice(("cuda", True))) == "red:a"
    assert chosen(known, tensors=TensorDevice(dlpack=10)) == "red:a"
    assert chosen(known, tensors=TensorDevice(("cpu", False))) == "cpu:host"


def test_architecture_of_that_very_device():
    known = registry(backend("green", here=("a", "b"), **GREEN))
    assert chosen(known, tensors=TensorDevice(("cuda", False), index=1)) == "green:b"


def test_two_for_one_device_is_a_matter_of_preference():
    known = registry(
        backend("late", preference=1, here=("a",), **GREEN), backend("early", here=("a",), **GREEN)
    )
    assert chosen(known, tensors=TensorDevice(("cuda", False))) == "late:a"
    assert chosen(known) == "late:a"


def test_two_kinds_of_device_and_no_tensors():
    known = registry(backend("green", here=("a",), **GREEN), backend("red", here=("a",), **RED))
    assert chosen(known) == "cpu:host"


def test_a_backend_without_tensors_is_never_a_surprise():
    known = registry(backend("odd", here=("a",)))
    assert chosen(known) == "cpu:host"
    assert chosen(known, "odd") == "odd:a"


def test_nothing_for_these_tensors():
    with pytest.raises(BackendNotFound, match="no backend here takes tensors on torch device xpu:0"):
        choose(tensors=TensorDevice(("xpu", False)), backends=registry())


def test_host_tensors_load_nobody_else():
    known = registry()

    def no(_name):
        raise AssertionError("asked for another backend")

    known.get, get = (lambda name: get(name) if name == "cpu" else no(name)), known.get
    known.add(backend("vendor"))
    assert chosen(known, tensors=TensorDevice(dlpack=1)) == "cpu:host"


def test_a_sick_backend_that_nobody_asked_for_does_no_harm():
    def sick(self):
        raise OSError

    assert chosen(registry(backend("sick", devices=sick, **RED))) == "cpu:host"


@pytest.mark.parametrize(
    ("asked", "error"), [("two:zz", Unsupported), ("nobody", BackendNotFound), ("no target!", KernelError)]
)
def test_mistakes(asked, error):
    with pytest.raises(error):
        choose(asked, backends=registry(backend("two")))


def test_a_target_that_is_none_is_refused_at_once():
    with pytest.raises(KernelError), target("a b"):
        pass
