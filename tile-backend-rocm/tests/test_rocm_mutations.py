"""Tests of the emulator: a generated product from which one barrier or wait is missing, or a wait too weak, must not pass."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from hip_oracle import MODES
from hip_products import BACKEND, info_of

from tile_backend_rocm.emulator import RocmEmulator
from tile_core import interpreter
from tile_core.backend import Source
from tile_core.testing import arguments, stages
from tile_core.testing.kernels import Case, gemm

TYPES = ("float16", "float32", "float16")
CASES = {
    "staged": Case(
        "gemm",
        lambda: gemm(64, 64, 128, (64, 64, 32), TYPES, transpose_b=True, stages=3),
        frozenset(("float16",)),
        rtol=2e-2,
        atol=0.1,
    ),
    "plain": Case(
        "gemm",
        lambda: gemm(64, 64, 64, (64, 64, 32), TYPES, stages=1),
        frozenset(("float16",)),
        rtol=2e-2,
        atol=0.1,
    ),
}
SITE = re.compile(r"(block_sync\(\);|copies_wait<(\d+)>\(\);)")


def mutants(source: Source) -> Iterator[tuple[str, Source]]:
    """Each barrier and wait of the kernel left out; each wait for nothing at all made one for less."""
    head, mark, kernel = source.text.rpartition('extern "C"')
    found = list(SITE.finditer(kernel))
    for n, m in enumerate(found):
        # after the last wait nothing reads what was copied
        if m[2] is not None and n == len(found) - 1:
            continue
        yield (
            f"without {m[1]} number {n}",
            _with(source, head + mark + kernel[: m.start()] + kernel[m.end() :]),
        )
        if m[2] is not None:
            weaker = f"copies_wait<{int(m[2]) + 1}>();"
            yield (
                f"{weaker} number {n}",
                _with(source, head + mark + kernel[: m.start()] + weaker + kernel[m.end() :]),
            )


def _with(source: Source, text: str) -> Source:
    return Source(text, source.language, source.suffix, source.launch)


def broken(arch: str) -> list:
    out = []
    for kind, case in CASES.items():
        source = stages.emit(case, BACKEND, info_of(arch))
        out += [pytest.param(arch, kind, s, id=f"{arch} {kind} {what}") for what, s in mutants(source)]
    return out


@pytest.mark.parametrize(
    ("arch", "kind", "source"), [x for arch in ("gfx942", "gfx90a", "gfx1100") for x in broken(arch)]
)
def test_caught(arch: str, kind: str, source: Source) -> None:
    case = CASES[kind]
    made = arguments.made(case)
    wanted = arguments.copies(made)
    interpreter.run(case.program, wanted)
    for mode in MODES:
        got = arguments.copies(made)
        reports = RocmEmulator(info_of(arch)).run(source, got, {}, mode=mode)
        if not all(r.clean for r in reports):
            return
        try:
            arguments.compare(case, got, wanted)
        except AssertionError:
            return
    pytest.fail("the emulator found nothing")


def test_there_are_enough() -> None:
    assert len(broken("gfx942")) >= 5
