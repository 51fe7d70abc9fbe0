"""Words that must not stand in tracked files, and names of targets that core must not know."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from tracked import CORE, ROOT, files, modules

# paths of somebody's machine; hosts of package registries (an index is the reader's choice)
MACHINE = re.compile(r"(?<![\w.])/(work|root|home|Users)/\w")
HOSTS = re.compile(r"\b(pypi\.org|files\.pythonhosted\.org|download\.pytorch\.org|registry\.npmjs\.org)\b")
SECRETS = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY|\bgh[po]_[A-Za-z0-9]{30}")

TARGETS = r"cuda|rocm|hip|metal|ascend|webgpu|cutedsl|nvidia|amd|apple|huawei"
NAMED = re.compile(rf"^({TARGETS})(:.*)?$|^(sm|gfx)_?\d")
# `hip` as an identifier is torch's own name of the fact that `torch_devices` speaks of
IDENTIFIER = re.compile(rf"(^|_)({TARGETS.replace('hip|', '')})(_|$)", re.IGNORECASE)


@pytest.mark.parametrize(
    "pattern", [MACHINE, HOSTS, SECRETS], ids=["machine paths", "registry hosts", "secrets"]
)
def test_banned_words(pattern):
    found = []
    for file in files():
        if file == Path(__file__):
            continue
        try:
            text = file.read_text("utf8")
        except UnicodeDecodeError:
            continue
        found += [f"{file.relative_to(ROOT)}: {m[0]}" for m in pattern.finditer(text)]
    assert not found, "\n".join(found)


def strings_and_names(tree):
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str() as text):
                yield node.lineno, text, NAMED
            case (
                ast.Name(id=name) | ast.Attribute(attr=name) | ast.FunctionDef(name=name) | ast.arg(arg=name)
            ):
                yield node.lineno, name, IDENTIFIER


def test_core_knows_no_target_by_name():
    """Facts belong into ``TargetInfo`` and behaviour into a role. The registry names packages to install, and nothing else."""
    exempt = {CORE / "registry.py"}
    found = [
        f"{file.relative_to(ROOT)}:{line}: {text!r}"
        for file, tree in modules("tile-core/src/")
        if file not in exempt and "cpu" not in file.relative_to(CORE).parts
        for line, text, pattern in strings_and_names(tree)
        if pattern.search(text)
    ]
    assert not found, "\n".join(found)
