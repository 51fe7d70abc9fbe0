"""Schedules by the solver: never worse, better where the search is not the best, the same on every run, and checked."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import bodies as b
import flash_attention
import numpy as np
import offsets
import pytest
import randomly
from simulator import attack

from tile_core import settings
from tile_core.errors import TileError
from tile_core.hardware import Target
from tile_core.inference.schedule import asking, optimal
from tile_core.inference.schedule.answers import Answers, Optimum, asked
from tile_core.inference.schedule.chart import summary
from tile_core.inference.schedule.check import faults
from tile_core.inference.schedule.dependences import dependences
from tile_core.inference.schedule.model import Body, Dep, fits
from tile_core.inference.schedule.modulo import timing
from tile_core.inference.schedule.optimal import RLIMIT, UNKNOWN, best
from tile_core.inference.schedule.program import Schedule
from tile_core.inference.schedule.program_order import in_program_order
from tile_core.inference.schedule.relays import relayed
from tile_core.inference.schedule.rings import deepened
from tile_core.inference.schedule.solver import Question
from tile_core.inference.schedule.timing import Timing
from tile_core.inference.schedule.tokens import synthesised
from tile_core.testing.emulated import emulated

# random bodies of which the search finds no shortest schedule; the number is the seed
LONGER = (115, 302, 305, 448, 560, 580)
SMALL = dict(batch=1, heads=1, seq_q=128, seq_kv=320, dim=64, block_M=128, block_N=64, threads=256)


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILE_CACHE_DIR", str(tmp_path))


def parts(body: Body) -> tuple[tuple[Dep, ...], Body, tuple[Dep, ...], Timing]:
    deps = dependences(body)
    full, every = relayed(body, deps)
    times = timing(full, every)
    assert times is not None
    return deps, full, every, times


def both(body: Body) -> tuple[Schedule, Schedule]:
    """(by the search, by whoever is better)."""
    deps, full, every, times = parts(body)

    def made(times: Timing) -> Schedule:
        return synthesised(full, deps, deepened(full, every, times))

    fast = in_program_order(made(times))
    return fast, best(fast, full, every, times, made, in_program_order)


def optimum(body: Body, deps: Sequence[Dep], times: Timing, rlimit: int = RLIMIT) -> Optimum:
    found = asking.apart(body, deps, times, rlimit)
    assert found is not None
    return found


def alone(call: str) -> None:
    """Call a function of this module in a process that has no other z3."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-c", f"import test_optimal; test_optimal.{call}"],
        env=env,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def sound(s: Schedule) -> bool:
    return not faults(s) and fits(s.body, s.depth) and attack(s, trips=(1, 3, 9)) is None


@pytest.mark.parametrize("seed", [n for n in range(30) if n not in (7,)])
def test_never_worse(seed: int) -> None:
    body = randomly.body(seed)
    full, every = relayed(body, dependences(body))
    if timing(full, every) is None:
        return
    fast, found = both(body)
    assert found.interval <= fast.interval
    assert found.lower <= found.interval
    assert found.solved or found == replace(fast, lower=found.lower)


@pytest.mark.parametrize("seed", LONGER)
def test_better_where_the_search_is_not_the_best(seed: int) -> None:
    fast, found = both(randomly.body(seed))
    assert found.solved
    assert fast.bounds == found.bounds
    assert found.lower <= found.interval < fast.interval
    assert sound(found)


def test_products_stay_undisturbed() -> None:
    _, full, every, times = parts(b.attention_together())
    found = optimum(full, every, times)
    assert found.times is not None
    assert found.times.interval == found.lower < times.interval  # the best there is
    assert optimal.disturbed(full, every, found.times) <= optimal.disturbed(full, every, times)


def test_a_lower_bound_is_proved_of_what_the_search_found() -> None:
    _, full, every, times = parts(randomly.body(76))
    found = optimum(full, every, times)
    assert found.times is None
    assert found.lower == times.interval > times.bound
    assert {verdict for _, verdict in found.asked} <= {"sat", "unsat"}


# the last two: whose laps dependences do not bound
FORMS = (74, 76, 78, 112, 145, 115, 259, 283, 305, 427, 43, 560)


def every_write(body: Body) -> list[tuple[str, str, str]]:
    return [(g.name, h.name, x.name) for g in body.ops for h in body.ops for x in body.ops]


def forms(seed: int) -> None:
    _, full, every, times = parts(randomly.body(seed))
    low, high = times.bound, times.interval
    while low < high:  # down to the shortest
        middle = (low + high) // 2
        mine = Question(full, every, middle, times, every_write(full)).answer(RLIMIT).verdict
        other = offsets.verdict(full, every, middle)
        assert (mine, other) in (("sat", "sat"), ("unsat", "unsat"), ("none near", "unsat"))
        low, high = (low, middle) if mine == "sat" else (middle + 1, high)


@pytest.mark.parametrize("seed", FORMS)
def test_another_form_of_the_question_has_the_same_answer(seed: int) -> None:
    alone(f"forms({seed})")


def difference(interval: int) -> None:
    _, full, every, times = parts(b.attention_together())
    assert Question(full, every, interval, times).answer(RLIMIT).verdict == "unsat"
    assert Question(full, every, interval, times, every_write(full)).answer(RLIMIT).verdict == "sat"


def test_what_is_disturbed_makes_a_difference() -> None:
    _, full, every, times = parts(b.attention_together())
    alone(f"difference({optimum(full, every, times).lower - 1})")


@pytest.mark.parametrize("program", ["/nowhere/python", "/bin/false"])
def test_without_a_process_of_its_own_the_search_decides(
    program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", program)
    fast, found = both(randomly.body(302))
    assert found == replace(fast, lower=found.lower)
    assert not found.solved
    assert Answers.here().clear() == 0  # it is asked again next time


def test_without_resources_the_search_decides() -> None:
    _, full, every, times = parts(randomly.body(302))
    found = optimum(full, every, times, rlimit=100)
    assert found.times is None
    assert found.lower == times.bound  # unknown proves nothing
    assert [verdict for _, verdict in found.asked] == [UNKNOWN] * optimal.PATIENCE


@pytest.mark.parametrize("rlimit", [20_000, 100_000, RLIMIT])
def test_the_same_on_every_run(rlimit: int) -> None:
    _, full, every, times = parts(b.attention_together())
    first = optimum(full, every, times, rlimit)
    assert all(optimum(full, every, times, rlimit) == first for _ in range(2))


def test_the_same_in_every_process(tmp_path: Path) -> None:
    """Sets of strings have another order in each process: the question must not."""
    code = (
        "import test_optimal as t; (s,) = t.attention()[0].plan.schedules.values(); print(s.solved, s.times)"
    )
    found: set[str] = set()
    for seed in ("1", "2", "3"):
        env = {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": seed, "TILE_SCHEDULE": "optimal"}
        env["TILE_CACHE_DIR"] = str(tmp_path / seed)
        run = [sys.executable, "-c", code]
        done = subprocess.run(run, env={**os.environ, **env}, capture_output=True, text=True, check=True)
        found.add(done.stdout)
    assert len(found) == 1
    assert found.pop().startswith("True")


def test_answers_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    body = randomly.body(448)
    _, found = both(body)

    def never(*_: object) -> Optimum:
        raise AssertionError("the solver is asked again")

    monkeypatch.setattr(optimal, "apart", never)
    assert both(body)[1] == found
    with pytest.raises(AssertionError, match="asked again"):
        both(randomly.body(305))
    assert Answers.here().clear() == 1


def test_a_damaged_answer_is_none() -> None:
    body = randomly.body(448)
    _, found = both(body)
    (file,) = Answers.here().folder.glob("*/*.json")
    file.write_text(file.read_text()[:40])
    assert both(body)[1] == found


def wrong(times: Timing) -> dict[str, Timing]:
    """Times that claim to be shorter and are not possible."""
    low = min(times.interval - 1, times.bound)
    early = dict.fromkeys(times.issue, 0)
    return {
        "all at once": replace(times, interval=low, issue=early, start=early),
        "too short": replace(times, interval=low),
        "rings of one slot": replace(times, interval=low, depth=dict.fromkeys(times.depth, 1)),
    }


@pytest.mark.parametrize("fault", ["all at once", "too short", "rings of one slot"])
def test_an_answer_that_is_not_possible_is_not_adopted(fault: str) -> None:
    body = randomly.body(302)
    _, full, every, times = parts(body)
    bad = wrong(times)[fault]
    Answers.here().put(asked(full, every, times, RLIMIT), Optimum(bad, times.bound))
    assert not optimal.possible(full, every, bad)
    fast, found = both(body)
    assert found == replace(fast, lower=times.bound)


@pytest.mark.parametrize("make", [b.attention_together, b.gemm_hopper, b.chunk_scan_hopper])
def test_what_the_search_finds_is_possible(make: Callable[[], Body]) -> None:
    _, full, every, times = parts(make())
    assert optimal.possible(full, every, times)


def test_names_and_costs_are_part_of_the_question() -> None:
    _, full, every, times = parts(b.attention_together())
    keys = {
        asked(full, every, times, RLIMIT),
        asked(full, every, times, RLIMIT + 1),
        asked(replace(full, signal=full.signal + 1), every, times, RLIMIT),
        asked(full, every[1:], times, RLIMIT),
        asked(full, every, replace(times, interval=times.interval + 1), RLIMIT),
    }
    assert len(keys) == 5


def test_the_chart_says_who_found_it_and_what_is_proved() -> None:
    fast, found = both(b.attention_together())
    assert "by the search" in summary(fast)
    assert f", none is below {found.lower}), by the solver" in summary(found)
    busiest = max(found.bounds, key=lambda n: found.bounds[n])
    assert f"({busiest} takes {found.bounds[busiest]}" in summary(found)


def attention() -> tuple[object, Sequence[np.ndarray], np.ndarray]:
    rng = np.random.default_rng(3)
    q = rng.standard_normal((1, 1, 128, 64)).astype(np.float16)
    k, v = rng.standard_normal((2, 1, 1, 320, 64)).astype(np.float16)
    jit = flash_attention.attention
    kernel = type(jit)(jit.function, jit.out_idx, jit.target)(**SMALL)
    return kernel.for_target(Target.parse("cuda:sm_90a")), (q, k, v), flash_attention.reference(q, k, v)


@pytest.mark.parametrize("mode", ["early", "late", "random"])
def test_a_kernel_of_the_solver_computes_the_same(mode: str) -> None:
    with settings.scope(schedule="optimal"):
        kernel, given, want = attention()
        (s,) = kernel.plan.schedules.values()
        key = kernel.key
        (out,) = emulated(kernel, given, {}, mode)
    assert s.solved
    assert not faults(s)
    assert np.abs(out - want).max() < 4e-3
    other, _, _ = attention()
    (fast,) = other.plan.schedules.values()
    assert not fast.solved
    assert s.interval < fast.interval
    assert key != other.key  # the cache of kernels tells them apart


def test_another_word_is_no_way_to_schedule() -> None:
    with settings.scope(schedule="optimale"), pytest.raises(TileError, match="TILE_SCHEDULE"):
        _ = settings.current().optimal
