"""Blocks with many tiles of the grid, whose tensors come ahead: tiles of different length, tiles read by threads and by products."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_backend_cuda.backend import CudaBackend
from tile_backend_cuda.prelude.emulate import CudaEmulator
from tile_core.hardware import Target
from tile_core.runtime.pipeline import make_plan

sys.path.insert(0, str(Path(__file__).parents[3] / "examples"))

import mamba_chunk_scan as mamba
from mamba_chunk_state import steps
from mutations import mutants


@tile.jit
def gathered(tokens, rows, columns, tiles, block=64, stages=2, dtype="float16"):
    """Tile n is rows ``start[n]`` and on of A, times B, plus a bias and what C held: tiles of any place, in any order."""

    @T.prim_func
    def kernel(
        A: T.Tensor((tokens, rows), dtype),
        B: T.Tensor((columns, rows), dtype),
        start: T.Tensor((tiles,), "int32"),
        bias: T.Tensor((tiles, block), "float32"),
        C: T.Tensor((tiles * block, columns), dtype),
        D: T.Tensor((tiles * block, columns), dtype),
    ):
        with T.Kernel(tiles, threads=128) as bx:
            first = start[bx]
            A_shared = T.alloc_shared((block, 64), dtype)
            B_shared = T.alloc_shared((columns, 64), dtype)
            C_shared = T.alloc_shared((block, columns), dtype)
            bias_shared = T.alloc_shared((block,), "float32")
            acc = T.alloc_fragment((block, columns), "float32")
            T.copy(C[bx * block : (bx + 1) * block, :], C_shared)
            T.copy(bias[bx, :], bias_shared)
            T.clear(acc)
            for k in T.Pipelined(rows // 64, num_stages=stages):
                T.copy(A[first : first + block, k * 64 : (k + 1) * 64], A_shared)
                T.copy(B[:, k * 64 : (k + 1) * 64], B_shared)
                T.gemm(A_shared, B_shared, acc, transpose_B=True)
            for i, j in T.Parallel(block, columns):
                acc[i, j] = acc[i, j] + bias_shared[i] + C_shared[i, j]
            T.copy(acc, D[bx * block : (bx + 1) * block, :])

    return kernel


def emulated(kernel: tile.Kernel, cores: int, arguments: list[np.ndarray], mode: str) -> str:
    """Runs the source for a chip with so many cores; gives the source."""
    info = replace(CudaBackend().info(Target("cuda", "sm_90a")), cores=cores)
    source = CudaBackend().codegen(info).emit(make_plan(kernel.program, info))
    for report in CudaEmulator().run(source, arguments, {}, mode=mode):
        assert report.clean, str(report)
    return source.text


@pytest.mark.parametrize("mode", ["late", "early", "random"])
@pytest.mark.parametrize(("tiles", "rows"), [(1, 64), (5, 128), (9, 64), (4, 256)])
def test_what_a_tile_needs_once(tiles: int, rows: int, mode: str, emulator: None) -> None:
    rng, tokens, block, columns = np.random.default_rng(tiles * 1000 + rows), 300, 64, 64
    a, b, c = (
        rng.standard_normal(s).astype(np.float16)
        for s in ((tokens, rows), (columns, rows), (tiles * block, columns))
    )
    start = rng.integers(0, tokens - block, tiles).astype(np.int32)
    bias = rng.standard_normal((tiles, block)).astype(np.float32)
    got = np.full_like(c, np.nan)
    text = emulated(gathered(tokens, rows, columns, tiles), 2, [a, b, start, bias, c, got], mode)
    parts = [a[s : s + block].astype(np.float32) @ b.astype(np.float32).T for s in start]
    wanted = np.concatenate(parts) + bias.reshape(-1, 1) + c
    assert np.abs(got - wanted).max() <= 5e-3 * np.abs(wanted).max()
    assert text.count("C_box") > 1  # it comes by the copy engine


def chunks(seed: int) -> tuple[tile.Kernel, list[np.ndarray], np.ndarray]:
    """The chunk scan: threads read four of its tiles themselves. (kernel, operands, result)"""
    batch, seqlen, heads, groups, chunk, dim, state = sizes = 2, 250, 8, 1, 128, 64, 64
    rng = np.random.default_rng(seed)
    dt, decay = steps(rng, batch, seqlen, heads, chunk)
    b, c = rng.standard_normal((2, batch, seqlen, groups, state)).astype(np.float16)
    x = rng.standard_normal((batch, seqlen, heads, dim)).astype(np.float16)
    states = rng.standard_normal((batch, dt.shape[2], heads, dim, state)).astype(np.float16)
    first = mamba.scores(c, b, chunk).astype(np.float16)
    given = [first, x, dt, decay, c, states, rng.standard_normal(heads).astype(np.float32)]
    return mamba.chunk_scan(*sizes), given, mamba.reference(*given)


@pytest.mark.parametrize("mode", ["late", "random"])
@pytest.mark.parametrize("cores", [1, 3])
def test_many_uneven_tiles(cores: int, mode: str, emulator: None) -> None:
    kernel, given, wanted = chunks(cores)
    got = np.full(wanted.shape, np.nan, np.float16)
    text = emulated(kernel, cores, [*given, got], mode)
    assert np.abs(got - wanted).max() <= 5e-3 * np.abs(wanted).max()
    assert "turn" in text


def test_reads_by_threads_are_fenced(emulator: None) -> None:
    """Without the fence of any one tile that threads read, the copy engine could write it while they do."""
    kernel, given, wanted = chunks(0)
    info = replace(CudaBackend().info(Target("cuda", "sm_90a")), cores=2)
    source = CudaBackend().codegen(info).emit(make_plan(kernel.program, info))
    begin = source.text.index("// ---- kernel")
    fences = [
        (what, text)
        for what, text in mutants(source.text[begin:])
        if what.startswith("fence_proxy_async_shared")
    ]
    assert len(fences) >= 6  # of the tiles of two loops, of those of the whole block, of the results
    for what, text in fences:
        broken = replace(source, text=source.text[:begin] + text)
        got = np.full(wanted.shape, np.nan, np.float16)
        found = [str(r) for r in CudaEmulator().run(broken, [*given, got], {}, mode="late")]
        assert any("missing-fence" in f for f in found), what
