"""Generated products as clang compiles them: matrix instructions, loads ahead of them, no spills, no conflicts of banks."""

from __future__ import annotations

import re
from itertools import product as cartesian
from pathlib import Path

import pytest
from hip_products import Product, compiled, emitted, info_of, inner_loop, instructions, planned

from tile_core.cli import main
from tile_core.dtypes import dtype
from tile_core.expr import Space
from tile_core.layout.layout import Axis, Layout

PRODUCTS = [
    Product(arch, transposed, stages=n)
    for arch, transposed, n in cartesian(("gfx942", "gfx90a"), (True, False), (3, 2))
]
# the oldest compiler that is supported here, which needs no package source of its own
PRODUCTS += [Product(arch, clang="clang-19") for arch in ("gfx942", "gfx90a")]
WAIT = re.compile(r"s_waitcnt (?:.*)vmcnt\((\d+)\)")
LOADS = ("global_load_lds_dword", "buffer_load_dword")


@pytest.mark.parametrize("product", PRODUCTS, ids=str)
def test_inner_loop(product: Product) -> None:
    """The loads of a later step are issued before this step's products; nothing waits for them in between."""
    loop = inner_loop(instructions(product))
    loads = [n for n, x in enumerate(loop) if x.startswith(LOADS)]
    products = [n for n, x in enumerate(loop) if x.startswith("v_mfma_f32_32x32x8")]
    # 128 x 32 and 32 x 128 halves by 256 threads, 4 bytes each
    assert len(loads) == 16
    assert len(products) == 16
    assert max(loads) < min(products)
    waits = [(n, int(m[1])) for n, x in enumerate(loop) if (m := WAIT.search(x))]
    assert [left for _, left in waits] == [16 * (product.stages - 2)]
    assert waits[0][0] < min(loads)


@pytest.mark.parametrize("product", PRODUCTS, ids=str)
def test_registers(product: Product) -> None:
    listing = instructions(product)
    assert not any(x.startswith(("scratch_", "buffer_store_dword", "flat_")) for x in listing)
    found = compiled(product)
    assert found.findings == ()
    assert found.resources["scratch"] == found.resources["vgpr_spills"] == found.resources["sgpr_spills"] == 0
    # two waves of a block on each of the four SIMDs of a compute unit: 256 registers each, of both kinds together
    assert 64 < found.resources["vgprs"] <= 256
    assert found.resources["shared"] == product.stages * 2 * 128 * 32 * 2


# architecture, type: the instruction. 64 bytes of k in each step
INSTRUCTIONS = {
    ("gfx942", "float16"): "v_mfma_f32_32x32x8_f16",
    ("gfx942", "bfloat16"): "v_mfma_f32_32x32x8_bf16",
    ("gfx942", "float8_e4m3fnuz"): "v_mfma_f32_32x32x16_fp8_fp8",
    ("gfx942", "float8_e5m2fnuz"): "v_mfma_f32_32x32x16_bf8_bf8",
    ("gfx942", "int8"): "v_mfma_i32_32x32x16_i8",
    ("gfx942", "float32"): "v_mfma_f32_32x32x2_f32",
    ("gfx942", "tfloat32"): "v_mfma_f32_32x32x4_xf32",
    ("gfx90a", "bfloat16"): "v_mfma_f32_32x32x8bf16_1k",
    ("gfx90a", "int8"): "v_mfma_i32_32x32x8i8",
    ("gfx90a", "float32"): "v_mfma_f32_32x32x2f32",
    ("gfx950", "float16"): "v_mfma_f32_32x32x16_f16",
    ("gfx950", "float8_e4m3fn"): "v_mfma_f32_32x32x16_fp8_fp8",
    ("gfx950", "int8"): "v_mfma_i32_32x32x32_i8",
    ("gfx1100", "float16"): "v_wmma_f32_16x16x16_f16",
    ("gfx1100", "bfloat16"): "v_wmma_f32_16x16x16_bf16",
    ("gfx1100", "int8"): "v_wmma_i32_16x16x16_iu8",
    ("gfx1201", "float16"): "v_wmma_f32_16x16x16_f16",
    ("gfx1201", "float8_e5m2"): "v_wmma_f32_16x16x16_bf8_bf8",
    ("gfx1201", "int8"): "v_wmma_i32_16x16x16_iu8",
}


@pytest.mark.parametrize(("arch", "kind"), INSTRUCTIONS, ids=str)
def test_matrix_instructions(arch: str, kind: str) -> None:
    """The one of the type, operands read from the LDS by 16 bytes without conflicts, no spills."""
    chosen = Product(arch, block=(128, 128, 64 // dtype(kind).bytes), dtype=kind)
    names = [x.split()[0] for x in instructions(chosen)]
    products = {n for n in names if n.startswith(("v_mfma", "v_wmma"))}
    assert {n.removesuffix("_e64") for n in products} == {INSTRUCTIONS[arch, kind]}
    reads = {n for n in names if n.startswith(("ds_read", "ds_load"))}
    assert reads == {"ds_load_b128" if arch.startswith("gfx1") else "ds_read_b128"}
    assert not any("conflicts per access" in note for note in planned(chosen).notes)
    assert compiled(chosen).resources["vgpr_spills"] == compiled(chosen).resources["scratch"] == 0


def test_accumulator_registers_are_told() -> None:
    """A block that fills a compute unit with few waves: the sums do not fit beside everything else."""
    found = compiled(Product("gfx90a", block=(256, 256, 16), threads=256, stages=2))
    assert found.resources["agprs"] > 0
    assert found.resources["vgprs"] <= 512
    assert found.resources["vgpr_spills"] == 0


@pytest.mark.parametrize("transposed", [True, False])
def test_tiles_may_fill_the_lds(transposed: bool) -> None:
    found = compiled(Product("gfx942", transposed, block=(256, 256, 32), threads=512, stages=2))
    assert found.resources["shared"] == 65536
    assert found.resources["vgprs"] <= 256 and found.resources["vgpr_spills"] == 0


# Lanes of a pass over the banks: ROCm blogs, "Avoiding LDS bank conflicts on AMD GPUs using CK-Tile".
READ_16 = [[*range(a, a + 4), *range(b, b + 4)] for a, b in ((0, 20), (4, 16), (8, 28), (12, 24))]
READ_16 += [[32 + lane for lane in group] for group in READ_16]
HALF_WAVES = [list(range(32)), list(range(32, 64))]


def ways(addresses: list[int], bytes: int) -> int:
    """The most words of one bank that lanes of one pass want."""
    banks: dict[int, set[int]] = {}
    for a in addresses:
        for word in range(a // 4, (a + bytes - 1) // 4 + 1):
            banks.setdefault(word % 32, set()).add(word)
    return max(len(words) for words in banks.values())


@pytest.mark.parametrize("product", [Product("gfx942"), Product("gfx942", False), Product("gfx90a")], ids=str)
def test_no_conflicts_of_banks(product: Product) -> None:
    """Every read of an operand, counted lane by lane and bank by bank from the layouts alone."""
    plan = planned(product)
    assert not any("conflicts per access" in note for note in plan.notes)
    tiles = {b.name: layout for b, layout in plan.layouts.items() if b.space is Space.SHARED}
    (choice,) = plan.atoms.values()
    assert choice.a is not None and choice.b is not None
    for name, operand, along in (("a", choice.a, 1), ("b", choice.b, 0)):
        turned = name == "b" and product.transposed
        vector = 8 if name == "a" or turned else 1
        for lanes in READ_16 if vector == 8 else HALF_WAVES:
            for register in range(0, operand.cosize(Axis.REGISTER), vector):
                at = [_address(tiles[name], operand, lane, register, turned) for lane in lanes]
                assert ways(at, 2 * vector) == 1, (name, lanes, register)


def _address(tile: Layout, operand: Layout, lane: int, register: int, turned: bool) -> int:
    """The byte that a lane of the first wave reads for a register."""
    index = _elements(operand)[lane, register]
    return 2 * tile.place(index[::-1] if turned else index)[Axis.MEMORY]


def _elements(operand: Layout) -> dict[tuple[int, int], tuple[int, int]]:
    if operand not in _KNOWN:
        found: dict[tuple[int, int], tuple[int, int]] = {}
        for at in cartesian(*map(range, operand.shape)):
            place = operand.place(at)
            found[place.get(Axis.THREAD, 0), place.get(Axis.REGISTER, 0)] = at
        _KNOWN[operand] = found
    return _KNOWN[operand]


_KNOWN: dict[Layout, dict[tuple[int, int], tuple[int, int]]] = {}


def test_copies_fill_tiles_without_gaps() -> None:
    """The wave's first address is that of all its lanes, which follow it: what a load to the LDS writes."""
    text = emitted(Product("gfx942")).text
    copies = re.findall(r"lds_copy_4(?:_if)?\(shared_address\(&(\w+)\[(.*?)\]\), &", text)
    assert {name for name, _ in copies} == {"a", "b"}
    for _, place in copies:
        assert "thread >> 6" in place and "thread & " not in place


def test_the_default_target_says_what_it_reads() -> None:
    space = info_of("gfx942").space("shared")
    assert space is not None and space.passes


def test_inspect_shows_that_there_are_no_conflicts(capsys: pytest.CaptureFixture[str]) -> None:
    """``tile inspect`` on the GEMM of the examples."""
    example = Path(__file__).parents[2] / "examples" / "matmul.py:matmul"
    assert main(["inspect", str(example), "--target", "rocm:gfx942"]) == 0
    shown = capsys.readouterr().out
    assert "A_shared, B_shared: read and written without bank conflicts" in shown
    assert "gemm0: mfma.32x32x8" in shown and "barrier0  after main.copy:copy1 (at most 2 pending)" in shown
