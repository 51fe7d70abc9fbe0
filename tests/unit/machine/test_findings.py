"""The machine emulator alone: each finding provoked by a small kernel that speaks to the machine directly."""

from __future__ import annotations

import numpy as np
import pytest

from tile_core.testing import machine
from tile_core.testing.machine import CODES, MachineError, Packed, Prelude, compiler_or_none

pytestmark = pytest.mark.skipif(compiler_or_none() is None, reason="no C++ compiler")

# every helper tells its line, as the preludes of backends do
PRELUDE = Prelude(
    """
#define AT (machine::at(__LINE__))
#define SYNC() (AT, machine::block_barrier())
#define NAMED(id, n) (AT, machine::named_sync(id, n))
#define ARRIVE(id, n) (AT, machine::named_arrive(id, n))
#define SUBGROUP() (AT, machine::subgroup_barrier(~0ull))
#define INIT(bar, n) (AT, machine::barrier_init(machine::shared_address(bar), n))
#define SIGNAL(bar, n, bytes) (AT, machine::barrier_arrive(machine::shared_address(bar), n, bytes))
#define WAIT(bar, parity) (AT, machine::barrier_wait(machine::shared_address(bar), parity))
#define CLUSTER() (AT, machine::cluster_arrive(true), machine::cluster_wait(true))
#define t ((int)machine::here->number)
#define rank (machine::here->rank)
#define SHARED ((float*)machine::shared_dynamic())
#define BAR (machine::shared_dynamic() + 512)
"""
)


def run(
    body: str, *, y: np.ndarray | None = None, threads: int = 64, shared: int = 1024, grid: int = 1, **more
):
    out = np.zeros(64, np.float32) if y is None else y
    text = f'extern "C" void k(float* x, float* y, int n) {{\n{body}\n}}\n'
    x = np.arange(64, dtype=np.float32)
    report = machine.run(
        text, PRELUDE, "k", [x, out, 64], grid=grid, threads=threads, shared_bytes=shared, **more
    )
    return report, out


def test_a_right_kernel_is_clean():
    for mode in machine.MODES:
        report, y = run("  SHARED[t] = x[t]; SYNC(); y[t] = SHARED[63 - t];", mode=mode)
        assert report.clean and str(report) == "no findings"
        assert (y == np.arange(64)[::-1]).all()


# code, kernel, a piece of the text, the first line named (the body starts in line 2), how it is launched
FAULTS = [
    ("race", "  SHARED[t] = x[t];\n  y[t] = SHARED[63 - t];", "no barrier orders the two", (2, 3), {}),
    ("race", "  SHARED[0] = t;", "is written by a thread (thread 1)", (2,), {}),
    ("race", "  if (t == 0) y[0] = 1;\n  if (t == 1) x[1] = y[0];", "buffer 1 at byte 0", (2, 3), {}),
    ("race", "  if (t == 0) y[0] = machine::here->block.x + 1;", "buffer 1 at byte 2", (2,), {"grid": 2}),
    ("uninitialised", "  y[t] = SHARED[t];", "before anything wrote it", (2,), {}),
    ("shared-bounds", "  SHARED[t + 200] = 1;", "outside the 1024 bytes", (2,), {}),
    ("global-bounds", "  y[t + 1] = x[t];", "has 256 bytes", (2,), {}),
    ("global-bounds", "  if (t == 0) y[0] = x[-3];", "byte -12", (2,), {}),
    ("misaligned", "  if (t == 0) y[0] = *(float*)((char*)x + 2);", "aligned to 4 bytes", (2,), {}),
    ("divergent-barrier", "  if (t != 5) SYNC();", "threads 0..4, 6..63 wait for the whole block", (2,), {}),
    ("divergent-barrier", "  if (t < 40) SYNC();\n  else SYNC();", "of the same subgroup", (2, 3), {}),
    ("divergent-collective", "  if (t != 5) SUBGROUP();", "thread 5 never reach", (2,), {}),
    ("divergent-collective", "  if (t % 2) SUBGROUP();\n  else SUBGROUP();", "of its group wait", (2, 3), {}),
    ("deadlock", "  if (t < 32) NAMED(1, 64);", "a named barrier 1 of 64 threads", (2,), {}),
    (
        "deadlock",
        "  if (t == 0) INIT(BAR, 2);\n  SYNC();\n  if (t == 0) SIGNAL(BAR, 1, 16);\n  WAIT(BAR, 0);",
        "phase 0 lacks 1 of 2 arrivals and 16 bytes",
        (5,),
        {},
    ),
    (
        "deadlock",
        "  while (*(volatile float*)y == 0) { AT; machine::poll(); }",
        "memory to change",
        (2,),
        {"threads": 1},
    ),
    ("phase-misuse", "  if (t == 0) { INIT(BAR, 1);\n  SIGNAL(BAR, 2, 0); }", "more arrivals", (3, 2), {}),
    ("phase-misuse", "  if (t == 0) WAIT(BAR, 0);", "was not initialised", (2,), {}),
    ("phase-misuse", "  if (t == 0) { INIT(BAR, 1);\n  INIT(BAR, 1); }", "while it is live", (3, 2), {}),
    (
        "phase-misuse",
        "  if (t == 0) { INIT(BAR, 1);\n  *(int*)BAR = 0; }",
        "holds a live barrier",
        (3, 2),
        {},
    ),
    (
        "race",
        "  if (t == 0) INIT(BAR, 1);\n  if (t == 40) SIGNAL(BAR, 1, 0);",
        "after its initialisation",
        (3, 2),
        {},
    ),
    (
        "exited-block",
        "  if (rank == 0) { SHARED[t] = 1; CLUSTER(); return; }\n  CLUSTER(); for (int i = 0; i < 9; ++i) SYNC();\n"
        "  y[t] = *(float*)machine::shared_pointer(1024 + 4 * t);",
        "after that block has ended",
        (4,),
        {"grid": 2, "cluster": 2},
    ),
    (
        "exited-block",
        "  if (rank == 0) { SHARED[t] = 1; CLUSTER(); for (int i = 0; i < 9; ++i) SYNC(); return; }\n  CLUSTER();\n"
        "  y[t] = *(float*)machine::shared_pointer(1024 + 4 * t);",
        "nothing orders that before the end",
        (4,),
        {"grid": 2, "cluster": 2},
    ),
    ("bad-operand", "  NAMED(17, 64);", "barriers 0 to 15", (2,), {}),
    ("bad-operand", "  NAMED(1, 33);", "multiple of 32", (2,), {}),
    ("crash", "  if (t == 3) *(int*)8 = 1;", "a wild pointer", (), {}),
]


@pytest.mark.parametrize(
    ("code", "body", "text", "lines", "how"), FAULTS, ids=[f"{f[0]}: {f[2]}" for f in FAULTS]
)
def test_finding(code: str, body: str, text: str, lines: tuple[int, ...], how: dict):
    report, _ = run(body, **how)
    found = [f for f in report.findings if f.code == code and text in str(f)]
    assert found, str(report)
    if lines:
        assert set(lines) <= {n for f in found for n in f.lines} | {0}, str(report)
    assert code in CODES


def test_the_same_value_may_be_written_twice():
    report, _ = run("  SHARED[t / 2] = t / 2; SYNC(); y[t] = SHARED[t / 2];\n  y[t & 1] = 1;")
    assert report.codes == {"race"} and {f.lines for f in report.findings} == {(2, 3)}, str(report)


def test_left_arrivals():
    report, _ = run("  if (t < 32) ARRIVE(1, 64);")
    assert report.codes == {"phase-misuse"} and "still holds 32 arrivals" in str(report)


def test_barriers_of_all_kinds_order():
    body = """
  if (t == 0) { INIT(BAR, 32); INIT(BAR + 8, 32); }
  SYNC();
  for (int i = 0; i < 4; ++i) {
    if (t < 32) { if (i) WAIT(BAR + 8, (i - 1) & 1); SHARED[t] = x[t] + i; SIGNAL(BAR, 1, 0); }
    else { WAIT(BAR, i & 1); y[t] = SHARED[t - 32]; SIGNAL(BAR + 8, 1, 0); }
  }
  SYNC();
  if (t < 32) { SHARED[t] = 1; ARRIVE(3, 64); } else { NAMED(3, 64); y[t] += SHARED[63 - t]; }"""
    for mode in machine.MODES:
        report, y = run(body, mode=mode, seed=4)
        assert report.clean, str(report)
        assert (y[32:] == np.arange(32) + 4).all()


def test_wide_subgroups():
    report = machine.run(
        'extern "C" void k(float* y) { SUBGROUP(); y[t] = machine::here->lane + 100 * machine::here->subgroup; }',
        Prelude(PRELUDE.text, subgroup=64),
        "k",
        [y := np.zeros(128, np.float32)],
        grid=1,
        threads=128,
    )
    assert report.clean and (y == np.concatenate([np.arange(64), np.arange(64) + 100])).all()
    with pytest.raises(ValueError, match="32 or 64"):
        Prelude("", subgroup=16)


def test_clusters_see_each_other():
    body = """
  SHARED[t] = x[t] * (rank + 1); CLUSTER();
  y[rank * 32 + t] = *(float*)machine::shared_pointer(((1 - rank) << 24) + 1024 + 4 * t); CLUSTER();"""
    report, y = run(body, threads=32, grid=2, cluster=2)
    assert report.clean, str(report)
    assert (y[:32] == 2 * np.arange(32)).all() and (y[32:] == np.arange(32)).all()


def test_arguments():
    text = """
struct Pair { float* where; int more; };
extern "C" void k(Pair p, unsigned char small, double d, bool flag, long long big, float* view) {
  p.where[0] = p.more + small + d + flag; view[0] = (float)(big >> 40); }
"""
    whole = np.zeros(8, np.float32)
    out = np.zeros(1, np.float32)
    pair = Packed(np.array([0, 5], np.uint64).tobytes(), ((0, out),))
    report = machine.run(text, PRELUDE, "k", [pair, 7, 0.5, True, 3 << 40, whole[4:]], grid=1, threads=1)
    assert report.clean, str(report)
    assert out[0] == 13.5 and whole[4] == 3
    with pytest.raises(MachineError, match="takes 6 arguments, 1 were given"):
        machine.run(text, PRELUDE, "k", [1], grid=1, threads=1)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"mode": "never"}, "no mode `never`"),
        ({"threads": 2000}, "is not possible"),
        ({"grid": 3, "cluster": 2}, "no multiple of the cluster"),
    ],
)
def test_wrong_launches(how: dict, message: str):
    with pytest.raises(MachineError, match=message):
        run("", **how)


def test_wrong_text():
    with pytest.raises(MachineError, match="does not compile for the host") as caught:
        run("  y[t] = unknown_name;")
    assert "unknown_name" in str(caught.value)
    with pytest.raises(MachineError, match="cannot pass a str"):
        machine.run('extern "C" void k(int a) {}', PRELUDE, "k", ["text"], grid=1, threads=1)


def test_timeout():
    report, _ = run("  for (volatile int i = 0; i >= 0; i = (i + 1) & 1023) {}", timeout=1.0)
    assert report.codes == {"timeout"} and report.stopped


def test_no_compiler(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setenv("CXX", "")
    with pytest.raises(MachineError, match="no C\\+\\+ compiler") as caught:
        run("  y[t] = 1;")
    assert "g++" in str(caught.value)


def test_findings_are_counted_and_stop_nothing():
    report, _ = run("  y[t] = SHARED[t]; SYNC(); SHARED[t] = 1;")
    assert report.codes == {"uninitialised"} and not report.stopped
    assert report.findings[0].count > 1 and "times" in str(report)
