"""Each atom against the formula of the PTX ISA, lane by lane and register by register."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest

import tile_backend_cuda.atoms as atoms
from tile_core.layout.algebra import product as tiled
from tile_core.layout.digits import reg
from tile_core.layout.layout import Axis, Layout, bijective, same

Formula = Callable[[int, int], tuple[int, int]]


def mma_c(t: int, i: int) -> tuple[int, int]:
    return t // 4 + 8 * (i // 2), t % 4 * 2 + i % 2


def wgmma_d(t: int, i: int) -> tuple[int, int]:
    return 16 * (t // 32) + t % 32 // 4 + 8 * (i // 2 % 2), 8 * (i // 4) + t % 4 * 2 + i % 2


def wgmma_a16(t: int, i: int) -> tuple[int, int]:
    return 16 * (t // 32) + t % 32 // 4 + 8 * (i // 2 % 2), t % 4 * 2 + i % 2 + 8 * (i // 4)


def wgmma_a32(t: int, i: int) -> tuple[int, int]:
    return 16 * (t // 32) + t % 32 // 4 + 8 * (i % 2), t % 4 + 4 * (i // 2)


def wgmma_a8(t: int, i: int) -> tuple[int, int]:
    return 16 * (t // 32) + t % 32 // 4 + 8 * (i // 4 % 2), t % 4 * 4 + i % 4 + 16 * (i // 8)


TABLE: list[tuple[str, Layout, int, int, Formula]] = [
    ("mma C", atoms.MMA_C, 32, 4, mma_c),
    ("m16n8k8 16-bit A", atoms.M16N8K8_A, 32, 4, mma_c),
    ("m16n8k8 16-bit B", atoms.M16N8K8_B, 32, 2, lambda t, i: (t % 4 * 2 + i, t // 4)),
    (
        "m16n8k16 A",
        atoms.M16N8K16_A,
        32,
        8,
        lambda t, i: (t // 4 + 8 * (i // 2 % 2), t % 4 * 2 + i % 2 + 8 * (i // 4)),
    ),
    ("m16n8k16 B", atoms.M16N8K16_B, 32, 4, lambda t, i: (t % 4 * 2 + i % 2 + 8 * (i // 2), t // 4)),
    (
        "m16n8k8 tf32 A",
        atoms.M16N8K8_TF32_A,
        32,
        4,
        lambda t, i: (t // 4 + 8 * (i % 2), t % 4 + 4 * (i // 2)),
    ),
    ("m16n8k8 tf32 B", atoms.M16N8K8_TF32_B, 32, 2, lambda t, i: (t % 4 + 4 * i, t // 4)),
    (
        "m16n8k32 A",
        atoms.M16N8K32_A,
        32,
        16,
        lambda t, i: (t // 4 + 8 * (i // 4 % 2), t % 4 * 4 + i % 4 + 16 * (i // 8)),
    ),
    ("m16n8k32 B", atoms.M16N8K32_B, 32, 8, lambda t, i: (t % 4 * 4 + i % 4 + 16 * (i // 4), t // 4)),
    ("m8n8k4 A", atoms.M8N8K4_A, 32, 1, lambda t, i: (t // 4, t % 4)),
    ("m8n8k4 B", atoms.M8N8K4_B, 32, 1, lambda t, i: (t % 4, t // 4)),
    ("m8n8k4 C", atoms.M8N8K4_C, 32, 2, lambda t, i: (t // 4, t % 4 * 2 + i)),
    ("wgmma A 16", atoms.wgmma_a(16), 128, 8, wgmma_a16),
    ("wgmma A tf32", atoms.wgmma_a(32), 128, 4, wgmma_a32),
    ("wgmma A 8", atoms.wgmma_a(8), 128, 16, wgmma_a8),
    *((f"wgmma D n{n}", atoms.wgmma_c(n), 128, n // 2, wgmma_d) for n in (8, 104, 176, 256)),
]


@pytest.mark.parametrize(
    ("name", "layout", "threads", "registers", "formula"), TABLE, ids=[t[0] for t in TABLE]
)
def test_fragment(name: str, layout: Layout, threads: int, registers: int, formula: Formula) -> None:
    assert bijective(layout, {Axis.THREAD: threads, Axis.REGISTER: registers})
    for t, i in product(range(threads), range(registers)):
        at = layout.place(formula(t, i))
        assert (at.get(Axis.THREAD, 0), at.get(Axis.REGISTER, 0)) == (t, i), name


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_ldmatrix(count: int, transposed: bool) -> None:
    layout, address = atoms.ldmatrix(count, transposed), atoms.ldmatrix_address(count)
    for m, t, i in product(range(count), range(32), range(2)):
        row, column = t // 4, t % 4 * 2 + i
        at = layout.place((m, column, row) if transposed else (m, row, column))
        assert (at.get(Axis.THREAD, 0), at.get(Axis.REGISTER, 0)) == (t, 2 * m + i)
    for m, r in product(range(count), range(8)):
        assert address.place((m, r)).get(Axis.THREAD, 0) == 8 * m + r


def test_attention_p_is_the_accumulator_as_it_stands() -> None:
    for n in (64, 128, 176, 256):
        operand = tiled(Layout((1, n // 16), (reg(n // 16),)), atoms.wgmma_a(16))
        assert operand is not None and same(operand, atoms.wgmma_c(n))
    pair = tiled(Layout((1, 2), (reg(2),)), atoms.MMA_C)
    assert pair is not None and same(pair, atoms.M16N8K16_A)


@pytest.mark.parametrize(
    "arch", ["SM_75", "SM_80", "SM_86", "SM_89", "SM_90", "SM_90A", "SM_100A", "SM_103A", "SM_120"]
)
def test_tables(arch: str) -> None:
    table = getattr(atoms, arch)
    names = [a.name for a in table]
    assert len(set(names)) == len(names)
    for atom in table:
        m, n, k = atom.shape
        assert {"mma": 32, "wgmma": 128, "tcgen05": 128}[atom.name.split(".")[0]] == atom.threads
        registers = m * n // atom.threads
        assert bijective(atom.c(n), {Axis.THREAD: atom.threads, Axis.REGISTER: registers})
        for layout, size in ((atom.a, m * k), (atom.b, k * n)):
            if layout is not None:
                assert bijective(layout, {Axis.THREAD: atom.threads, Axis.REGISTER: size // atom.threads})


def test_hopper_prefers_the_warpgroup() -> None:
    assert atoms.SM_90A[0].name == "wgmma.m64k16.f32.f16" and atoms.SM_90A[0].requires == ("wgmma",)
    assert all(a.k_major for a in atoms.SM_90A if a.shared_a and a.bits != 16)
