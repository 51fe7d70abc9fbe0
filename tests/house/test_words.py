"""Words that must not stand in tracked files, and names of targets that core must not know."""

from __future__ import annotations

import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest
from tracked import CORE, ROOT, files

# paths of somebody's machine; hosts of package registries (an index is the reader's choice)
MACHINE = re.compile(r"(?<![\w.])/(work|root|home|Users)/\w")
HOSTS = re.compile(r"\b(pypi\.org|files\.pythonhosted\.org|download\.pytorch\.org|registry\.npmjs\.org)\b")
SECRETS = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY|\bgh[po]_[A-Za-z0-9]{30}")

VENDORS = r"cuda|rocm|metal|ascend|webgpu|cutedsl|nvidia|amd|apple|huawei|hip"
# a word of its own or a part of a name
WORD = re.compile(rf"(?<![A-Za-z])({VENDORS})(?![A-Za-z0-9])|\b(sm|gfx)_?\d", re.IGNORECASE)
TORCH = {"hip", '" (HIP)"'}  # torch's name of one of its builds, which `torch_devices` speaks of
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)


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


def python_words(file: Path) -> Iterator[tuple[int, str]]:
    """Line and text of what is neither comment nor docstring."""
    with tokenize.open(file) as lines:
        before = None
        for token in tokenize.generate_tokens(lines.readline):
            if token.type in (tokenize.COMMENT, tokenize.NL):
                continue
            documents = token.type == tokenize.STRING and before in STARTS
            if not documents and token.string not in TORCH:
                yield token.start[0], token.string
            before = token.type


STARTS = (None, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)  # where a string is a statement


def other_words(file: Path) -> Iterator[tuple[int, str]]:
    text = COMMENT.sub(lambda m: "\n" * m[0].count("\n"), file.read_text("utf8"))
    yield from enumerate(text.splitlines(), 1)


def test_core_knows_no_vendor():
    """Facts belong into ``TargetInfo`` and behaviour into a role. The registry names packages to install, and nothing else."""
    exempt = CORE / "registry.py"
    found = [
        f"{file.relative_to(ROOT)}:{line}: {text.strip()}"
        for file in files()
        if CORE in file.parents and file != exempt
        for line, text in (python_words if file.suffix == ".py" else other_words)(file)
        if WORD.search(text)
    ]
    assert not found, "\n".join(found)
