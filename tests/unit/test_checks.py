from __future__ import annotations

import sys

import pytest

from tile_core import checks


def no_driver():
    raise OSError("no driver")


@pytest.mark.parametrize(
    ("check", "level", "message"),
    [
        (
            checks.library("x", ("libno-such-thing.so.9",), "install it"),
            "error",
            "libno-such-thing.so.9 cannot be loaded",
        ),
        (checks.package("x", ("no-such-package", "pluggy")), "ok", "pluggy "),
        (checks.package("x", ("no-such-package",)), "warning", "no-such-package is not installed"),
        (checks.program("x", (sys.executable,), "install it"), "ok", sys.executable),
        (checks.program("x", ("no-such-program",), "install it"), "warning", "no no-such-program"),
        (checks.devices(lambda: ["A", "B"], ""), "ok", "A, B"),
        (checks.devices(lambda: [], "buy one"), "warning", "none"),
        (checks.devices(no_driver, "buy one"), "error", "OSError: no driver"),
    ],
)
def test_rows(check, level, message):
    finding = check.run()
    assert finding.level == level
    assert message in finding.message
