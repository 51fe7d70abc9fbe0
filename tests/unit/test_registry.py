"""The registry with plugins that are given by hand: no packaging."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from types import SimpleNamespace

import pytest

from tile_core import settings
from tile_core.backend import API, ApiVersion, FactsOnly
from tile_core.errors import (
    BackendConflict,
    BackendIncompatible,
    BackendLoadFailed,
    BackendNotFound,
    Unsupported,
)
from tile_core.hookspecs import hookimpl
from tile_core.registry import Registry, registry


def backend(name="made", api=API, **facts):
    made = type("Made", (FactsOnly,), {"name": name, "api": api, "targets": lambda self: (), **facts})
    return made()


def plugin(*backends):
    @hookimpl
    def tile_register_backends(registry):
        for each in backends:
            registry.add(each)

    return SimpleNamespace(tile_register_backends=tile_register_backends)


@pytest.fixture
def empty():
    return Registry(lambda: ())


def test_a_plugin_without_packaging(empty):
    made = backend()
    empty.add_plugin(plugin(made))
    assert empty.get("made") is made
    assert empty.names() == ("made",)
    assert [s.state for s in empty.statuses() if s.name == "made"] == ["no device"]


def test_all_or_nothing(empty):
    with pytest.raises(BackendConflict, match="already registered"):
        empty.add_plugin(plugin(backend("one"), backend("two"), backend("one")), "greedy")
    assert empty.names() == ()
    empty.add_plugin(plugin(backend("one")), "greedy")
    assert empty.names() == ("one",)


@pytest.mark.parametrize(
    "api", [ApiVersion(API.major + 1, 0), ApiVersion(API.major - 1, 9), ApiVersion(API.major, API.minor + 1)]
)
def test_versions_of_the_interface(empty, api):
    with pytest.raises(BackendIncompatible, match=f"{api[0]}.{api[1]}"):
        empty.add(backend(api=ApiVersion(*api)))


def test_an_older_minor_fits(empty):
    empty.add(backend(api=ApiVersion(API.major, 0)))
    assert empty.get("made")


def test_not_a_backend(empty):
    with pytest.raises(BackendLoadFailed, match="no backend"):
        empty.add(SimpleNamespace(name="made", api=API))


def test_missing_version_of_the_interface(empty):
    made = type("Made", (FactsOnly,), {"name": "made", "targets": lambda self: ()})
    with pytest.raises(BackendLoadFailed, match="api"):
        empty.add_plugin(plugin(made()))


def test_an_entry_point_to_nothing():
    point = EntryPoint("leaves", "tests_that_leave", "tile_core.backends")
    names = Registry(lambda: [point])
    with pytest.raises(BackendNotFound):
        names.get("stays")
    with pytest.raises(BackendLoadFailed, match="ModuleNotFoundError"):
        names.get("leaves")


def test_disabled_also_when_loaded(empty):
    empty.add(backend())
    with settings.scope(disable_backends="made"):
        assert empty.names() == ()
        with pytest.raises(BackendNotFound, match="switched off"):
            empty.get("made")
    assert empty.get("made")


def test_one_registry_for_the_process():
    assert registry() is registry()


@pytest.mark.parametrize("role", ["lowering", "codegen", "compiler", "launcher"])
def test_facts_only(role):
    with pytest.raises(Unsupported, match=f"no {role} in this version"):
        getattr(backend(), role)(None)
