"""What is proved of the code that is emitted for engines: no fence, arrival or meeting may be missing, and counts must agree."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "examples"))
sys.path.insert(0, str(Path(__file__).parents[3] / "tests" / "device"))

from example_cases import cases

from tile_backend_cuda.backend import CudaBackend
from tile_backend_cuda.codegen.instructions import instructions
from tile_backend_cuda.prelude.emulate import CudaEmulator
from tile_core import settings
from tile_core.dtypes import FLOAT32, INT32, UINT64
from tile_core.expr import Buffer, Load, Space, Var, binary, const
from tile_core.hardware import Target
from tile_core.inference.plan import TilePlan
from tile_core.inference.schedule import crowds, program_order
from tile_core.lowering.simt.lower import lower_for
from tile_core.lowering.simt.role_loop import RoleLoop
from tile_core.lowering.simt.telling import Telling
from tile_core.program import Bind, If, Invoke, Place, Stmt
from tile_core.program.visit import bodies, mapped, statements
from tile_core.runtime.pipeline import make_plan
from tile_core.testing.machine.launch import MODES
from tile_core.verification.arrivals import miscounted, unfenced
from tile_core.verification.heard import Emitted, Meaning, Words
from tile_core.verification.plans import FAILED, PROVED, of_code, verified
from tile_core.verification.sites import Sites

INFO = CudaBackend().info(Target("cuda", "sm_90a"))
KERNELS = (
    "gemm_relu:gemm_relu", "flash_attention:attention", "attention_backward:backward", "retention:retention",
    "mamba_chunk_scan:chunk_scan", "mla_decode:decode", "mla_prefill:prefill", "dequant_gemm:dequant_gemm",
)  # fmt: skip
# fences that another one of the same threads stands for, on the way to the same engine
SPARE = {"retention:retention": 5, "attention_backward:backward": 1, "mla_decode:decode": 3}
FENCE = "fence_proxy_async_shared();"


@cache
def plan(kernel: str) -> TilePlan:
    module, _, name = kernel.rpartition(":")
    found = importlib.import_module(module)
    return make_plan(getattr(found, name)(**found.EXAMPLE[name]).program, INFO)


def emitted(kernel: str) -> Emitted:
    return lowered(plan(kernel))


def lowered(made: TilePlan) -> Emitted:
    """The launch of a plan, whatever may be wrong with it."""
    with settings.scope(verify=settings.NEVER):
        (found,) = lower_for(made, instructions(INFO)).emitted
    return found


def in_two_groups() -> TilePlan:
    """A loop whose threads read tiles while a product is at work."""
    module = importlib.import_module("mamba_chunk_scan")
    return make_plan(module.chunk_scan(1, 512, 2, 1, 512, 32, 128, fused=True).program, INFO)


def without(e: Emitted, meaning: Meaning) -> Iterator[Emitted]:
    """The launch without one call of a meaning, for each of them, in program order."""

    def cut(body: tuple[Stmt, ...], left: list[int]) -> tuple[Stmt, ...]:
        out: list[Stmt] = []
        for s in body:
            if _means(e, s, meaning):
                left[0] -= 1
                if left[0] == -1:
                    continue
            out.append(mapped(s, lambda x: x, lambda b: cut(b, left)) if bodies(s) else s)
        return tuple(out)

    for n in range(sum(_means(e, s, meaning) for s in statements(e.body))):
        yield replace(e, body=cut(e.body, [n]))


def _means(e: Emitted, s: Stmt, meaning: Meaning) -> bool:
    return isinstance(s, Invoke) and e.meanings.get(s.function) is meaning


def miscounts(e: Emitted) -> list[str]:
    return [f.text for f in miscounted(e, Sites.of(e))]


def open_ways(e: Emitted) -> list[str]:
    return [f.text for f in unfenced(e, Sites.of(e))]


@pytest.mark.parametrize("kernel", KERNELS)
def test_proved(kernel: str) -> None:
    assert [o.ask().status for o in of_code([emitted(kernel)])] == [PROVED, PROVED]


@pytest.mark.parametrize("kernel", KERNELS)
def test_no_fence_may_be_missing(kernel: str) -> None:
    lost = [bool(open_ways(e)) for e in without(emitted(kernel), Meaning.FENCE)]
    assert lost and lost.count(False) == SPARE.get(kernel, 0)


def test_the_emulator_sees_no_more() -> None:
    """Every fence without which the emulator finds something is one that the proof asks for, and there are such."""
    example = next(c for c in cases("") if c.kernel == "retention:retention" and not c.large)
    assert example.arguments is not None
    module = importlib.import_module("retention")
    made = make_plan(module.retention(*example.arguments, **example.keywords).program, INFO)
    source = CudaBackend().codegen(INFO).emit(made)
    e = lowered(made)
    proofs = [open_ways(x) for x in without(e, Meaning.FENCE)]
    places = [m.start() for m in re.finditer(re.escape(FENCE), source.text)]
    assert len(places) == len(proofs)
    data, wrong = example.data(), 0
    for at, proof in zip(places, proofs, strict=True):
        text = source.text[:at] + source.text[at + len(FENCE) :]
        out = np.zeros(example.reference(*data).shape, np.float16)
        found = CudaEmulator().run(replace(source, text=text), [*data, out], {}, mode=MODES[0])
        clean = all(r.clean for r in found)
        assert clean or proof
        wrong += not clean
    assert wrong >= 3


@pytest.mark.parametrize("kernel", KERNELS)
def test_each_token_is_told(kernel: str) -> None:
    e = emitted(kernel)

    def silent(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        kept = (s for s in body if not _means(e, s, Meaning.ARRIVE))
        return tuple(mapped(s, lambda x: x, silent) if bodies(s) else s for s in kept)

    found = miscounts(replace(e, body=silent(e.body)))
    assert {t.name for t in e.tokens} <= {text.split()[4] for text in found if text.startswith("nobody")}


@pytest.mark.parametrize("kernel", KERNELS)
def test_no_arrival_may_be_missing(kernel: str) -> None:
    """Neither in a loop nor in the partial steps beside it."""
    e = emitted(kernel)
    assert all(miscounts(x) for x in without(e, Meaning.ARRIVE))


@pytest.mark.parametrize("more", [-1, 1])
@pytest.mark.parametrize("kernel", KERNELS)
def test_counts_are_off_by_one(monkeypatch: pytest.MonkeyPatch, kernel: str, more: int) -> None:
    right = Telling.arrivals
    monkeypatch.setattr(Telling, "arrivals", lambda self, loop, token: right(self, loop, token) + more)
    e = emitted(kernel)
    named = " ".join(miscounts(e))
    assert all(t.name in named for t in e.tokens if t.beside)


def test_too_few_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    """One thread of a group tells what each of its subgroups should, though as many are awaited as should."""
    tell = RoleLoop.tell

    def alone(self: RoleLoop, op: str, instance: object, shown: bool) -> list[Stmt]:
        with pytest.MonkeyPatch.context() as m:
            m.setattr(Telling, "told_once", lambda *_: True)
            return list(tell(self, op, instance, shown))  # pyright: ignore

    monkeypatch.setattr(RoleLoop, "tell", alone)
    e = lowered(in_two_groups())
    assert any(re.match("1 threads arrive at .*, 4 are awaited", text) for text in miscounts(e))


def test_a_crowd_that_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lowering follows the plan, so its counts agree; what the plan then says of memory is wrong."""
    monkeypatch.setattr(crowds, "crowds", lambda _schedule: frozenset())
    monkeypatch.setattr(program_order, "checked", lambda schedule: schedule)
    monkeypatch.setattr(program_order, "faults", lambda _schedule: [])
    broken = in_two_groups()
    e = lowered(broken)
    assert miscounts(e) == []
    rows = {r.what: r for r in verified(broken)}
    assert rows["order kept, nobody stuck"].status == FAILED
    assert "mamba_chunk_scan.py" in rows["order kept, nobody stuck"].example


def test_threads_must_meet_before_one_tells() -> None:
    """Of a subgroup that has read what is copied anew."""
    found = [open_ways(e) for e in without(emitted("mamba_chunk_scan:chunk_scan"), Meaning.MEET)]
    assert any("have met" in text for texts in found for text in texts)


def test_a_scalar_from_a_tile_is_a_read() -> None:
    """Also where it only gets a name: what is copied there next has to wait for it."""
    tile = Buffer("tile", (8,), FLOAT32, Space.SHARED)
    words = Buffer("tokens", (2,), UINT64, Space.SHARED)
    told = Words("loop", "read", 0, 1, 1, (), frozenset({tile}), frozenset(), frozenset({tile}))
    read = Bind(Var("x", FLOAT32), Load(tile, (const(0),)))
    tell = Invoke("arrive", (Place(words, (const(0),)),))
    thread = Var("thread", INT32)
    for fences, wrong in ((), True), ((Invoke("fence"), Invoke("meet")), False):
        body = (If(binary("==", thread, 0), (read, *fences, tell)),)
        meanings = {"arrive": Meaning.ARRIVE, "fence": Meaning.FENCE, "meet": Meaning.MEET}
        e = Emitted(body, thread, 32, 32, words, (told,), {0: 1}, meanings)
        assert miscounts(e) == [] and bool(open_ways(e)) is wrong
