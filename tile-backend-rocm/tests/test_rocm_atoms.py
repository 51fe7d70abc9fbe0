"""The atom table and the emulated instructions, each against values that AMD published."""

from __future__ import annotations

import re
from itertools import product

import ml_dtypes
import numpy as np
import pytest
from published_layouts import published

import tile_backend_rocm.atoms as atoms
from tile_backend_rocm.emulator import run
from tile_backend_rocm.prelude.matrix import Instruction, helper_name
from tile_core.hardware import Atom
from tile_core.layout.layout import Axis, Layout, bijective

PLACES = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "xf32": np.float32,
    "i8": np.int8,
    "fp8": ml_dtypes.float8_e4m3fn,
    "bf8": ml_dtypes.float8_e5m2,
    "fp8z": ml_dtypes.float8_e4m3fnuz,
    "bf8z": ml_dtypes.float8_e5m2fnuz,
}
SINGLE = {a.name: a for a in atoms.ALL if not re.search(r"\.x\d+$", a.name)}


def where(layout: Layout, shape: tuple[int, int], threads: int) -> dict[tuple[int, int], tuple[int, int]]:
    """(lane, register) -> element, copies included."""
    out: dict[tuple[int, int], tuple[int, int]] = {}
    for at in product(*map(range, shape)):
        place = layout.place(at)
        lane = place.get(Axis.THREAD, 0)
        copies = [0]
        for r in layout.replicas:
            copies = [c + n * r.stride for c in copies for n in range(r.extent)]
        for c in copies:
            out[(lane + c) % threads, place.get(Axis.REGISTER, 0)] = at
    return out


@pytest.mark.parametrize("name", published())
def test_atom(name: str) -> None:
    """Sums lie where AMD says. Operands do, too, but for an order of k that a and b share."""
    atom, data = SINGLE[name], published()[name]
    m, n, k = atom.shape
    assert atom.a is not None and atom.b is not None
    sums = where(atom.c(n), (m, n), atom.threads)
    for lane, elements in data["D"].items():
        assert [sums[lane, v] for v in range(len(elements))] == elements
    order: dict[int, int] = {}
    for layout, matrix, shape in ((atom.a, "A", (m, k)), (atom.b, "B", (k, n))):
        ours = where(layout, shape, atom.threads)
        for lane, elements in data[matrix].items():
            for i, theirs in enumerate(elements):
                mine = ours[lane, i]
                line, step = (mine, theirs) if matrix == "A" else (mine[::-1], theirs[::-1])
                assert line[0] == step[0]
                assert order.setdefault(line[1], step[1]) == step[1]
    assert len(set(order.values())) == len(order)


def kernels() -> str:
    """All instructions, each as an entry of one source: compiled once."""
    cases: list[str] = []
    for number, name in enumerate(published()):
        data, i = published()[name], Instruction.of(name)
        size = len(data["A"][0]) * np.dtype(PLACES[i.a]).itemsize
        cases.append(f"case {number}: {helper_name(name)}(s, a + t * {size}, b + t * {size}); break;")
    return f"""extern "C" __global__ void one(const u8* a, const u8* b, float* c, int which, int sums) {{
  const int t = TILE_THREAD;
  alignas(16) float s[16];
  for (int i = 0; i < sums; ++i) s[i] = c[t * sums + i];
  switch (which) {{
    {" ".join(cases)}
  }}
  for (int i = 0; i < sums; ++i) c[t * sums + i] = s[i];
}}
"""


@pytest.mark.parametrize("name", published())
def test_emulated_instruction(name: str) -> None:
    """Operands in the lanes that AMD's values name, and the sums that they hold."""
    atom, data, i = SINGLE[name], published()[name], Instruction.of(name)
    m, n, k = atom.shape
    random = np.random.default_rng(0)
    dense = {"A": np.zeros((m, k)), "B": np.zeros((k, n))}
    held: dict[str, np.ndarray] = {}
    for matrix, kind in (("A", i.a), ("B", i.b)):
        values = np.zeros((atom.threads, len(data[matrix][0])))
        for lane, elements in data[matrix].items():
            for r, at in enumerate(elements):
                dense[matrix][at] = dense[matrix][at] or random.integers(1, 4)
                values[lane, r] = dense[matrix][at]
        if i.generation == 3:  # both halves of a wave must hold the same
            half = np.maximum(values[:16], values[16:])
            values = np.concatenate([half, half])
        held[matrix] = values.astype(PLACES[kind])
    sums = len(data["D"][0])
    # the kernel carries the bits of integers as those of floats
    c = np.ones((atom.threads, sums), np.int32 if i.c == "i32" else np.float32)
    raw = [held[x].view(np.uint8).copy() for x in "AB"]
    given = [*raw, c, list(published()).index(name), sums]
    report = run(kernels(), "one", given, wave=atom.threads, grid=1, threads=atom.threads)
    assert report.clean, str(report)
    wanted = dense["A"] @ dense["B"] + 1
    for lane, elements in data["D"].items():
        assert [c[lane, v] for v in range(sums)] == [wanted[at] for at in elements]


def _single(name: str) -> str:
    return re.sub(r"\.x\d$", "", name).replace(".f16.f16", ".f32.f16")


def test_all_instructions_of_the_table_are_published_or_of_cdna4() -> None:
    """AMD's calculator has no CDNA4; pairs of 8-bit types share one layout, sums that are converted that of their instruction."""
    kinds = {re.sub(r"(fp8|bf8)z?(_(fp8|bf8)z?)?$", "eight", n) for n in published()}
    mine = {
        re.sub(r"(fp8|bf8)z?(_(fp8|bf8)z?)?$", "eight", _single(a.name))
        for table in (atoms.GFX90A, atoms.GFX942, atoms.GFX1100, atoms.GFX1201)
        for a in table
    }
    assert mine == kinds


@pytest.mark.parametrize("atom", atoms.ALL, ids=lambda a: a.name)
def test_operands_of_several_instructions(atom: Atom) -> None:
    """A lane's registers are all there, and the k of each instruction are the same in a and b."""
    m, n, k = atom.shape
    assert atom.a is not None and atom.b is not None
    i = Instruction.of(atom.name)
    for layout, shape in ((atom.a, (m, k)), (atom.b, (k, n))):
        per = layout.cosize(Axis.REGISTER)
        assert per == i.per * i.times
        assert layout.replicas or bijective(layout, {Axis.THREAD: atom.threads, Axis.REGISTER: per})
        assert len(where(layout, shape, atom.threads)) == atom.threads * per
    steps: dict[int, int] = {}
    for layout, shape, dim in ((atom.a, (m, k), 1), (atom.b, (k, n), 0)):
        for (_, r), at in where(layout, shape, atom.threads).items():
            assert steps.setdefault(at[dim], r // i.per) == r // i.per


@pytest.mark.parametrize("arch", ["GFX90A", "GFX942", "GFX950", "GFX1100", "GFX1201"])
def test_tables(arch: str) -> None:
    table = getattr(atoms, arch)
    wave = 32 if arch.startswith("GFX1") else 64
    assert len({a.name for a in table}) == len(table) and {a.threads for a in table} == {wave}


def test_lanes_read_sixteen_bytes_first() -> None:
    for table in (atoms.GFX90A, atoms.GFX942, atoms.GFX950):
        first: dict[tuple[str, ...], Atom] = {}
        for a in table:
            first.setdefault(a.types, a)
        for a in first.values():
            assert a.a is not None
            assert a.a.cosize(Axis.REGISTER) * a.bits == 128, a.name
