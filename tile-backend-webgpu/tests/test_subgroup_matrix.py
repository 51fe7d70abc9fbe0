"""Products on subgroup matrices: Tint takes the text, and lavapipe runs it with the matrices written as plain arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from plain_matrices import plain

import tile_core.language as T
from tile_backend_webgpu.atoms import MATRIX
from tile_backend_webgpu.codegen import emit
from tile_backend_webgpu.codegen.instructions import WgslVectors, instructions
from tile_backend_webgpu.compiler.tint import Shader, findings
from tile_backend_webgpu.targets import TARGETS
from tile_core import interpreter
from tile_core.backend import Source
from tile_core.errors import BackendError
from tile_core.hardware import Device, TargetInfo
from tile_core.program import TileProgram
from tile_core.registry import registry
from tile_core.runtime import pipeline

INFOS = {info.target.arch: info for info in TARGETS if MATRIX in info.features}


def gemm(
    M, N, K, blocks, types, threads=128, transpose_A=False, transpose_B=False, clear=False, stages=2
) -> TileProgram:
    bm, bn, bk = blocks
    operand, result = types

    @T.prim_func
    def kernel(
        A: T.Tensor((K, M) if transpose_A else (M, K), operand),
        B: T.Tensor((N, K) if transpose_B else (K, N), operand),
        C: T.Tensor((M, N), result),
    ):
        with T.Kernel(T.ceildiv(N, bn), T.ceildiv(M, bm), threads=threads) as (bx, by):
            a = T.alloc_shared((bk, bm) if transpose_A else (bm, bk), operand)
            b = T.alloc_shared((bn, bk) if transpose_B else (bk, bn), operand)
            c = T.alloc_fragment((bm, bn), result)
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, bk), num_stages=stages):
                if transpose_A:
                    T.copy(A[k * bk, by * bm], a)
                else:
                    T.copy(A[by * bm, k * bk], a)
                if transpose_B:
                    T.copy(B[bx * bn, k * bk], b)
                else:
                    T.copy(B[k * bk, bx * bn], b)
                T.gemm(a, b, c, transpose_A=transpose_A, transpose_B=transpose_B, clear_accum=clear)
            T.copy(c, C[by * bm, bx * bn])

    return kernel.program


def chained(operand: str, result: str) -> TileProgram:
    """A product of a product, scaled in between: accumulators leave the matrices, and a fragment becomes an operand."""

    @T.prim_func
    def kernel(A: T.Tensor((32, 32), operand), B: T.Tensor((32, 32), operand), C: T.Tensor((32, 32), result)):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((32, 32), operand)
            b = T.alloc_shared((32, 32), operand)
            c = T.alloc_fragment((32, 32), result)
            d = T.alloc_fragment((32, 32), operand)
            out = T.alloc_fragment((32, 32), result)
            T.copy(A, a)
            T.copy(B, b)
            T.clear(out)
            for _ in T.serial(2):
                T.gemm(a, b, c, clear_accum=True)
                for i, j in T.Parallel(32, 32):
                    d[i, j] = T.cast(c[i, j] * 0.25, operand)
                    out[i, j] = out[i, j] * 0.5
                T.gemm(d, b, out)
            T.copy(out, C)

    return kernel.program


SIMDGROUP = [("float32", "float32"), ("float16", "float16")]
COOPERATIVE = [("float16", "float32"), ("float16", "float16")]
PRODUCTS = [
    *(("apple_matrix", gemm(64, 64, 64, (32, 32, 16), t)) for t in SIMDGROUP),
    *(("nvidia_matrix", gemm(32, 32, 32, (32, 32, 16), t)) for t in COOPERATIVE),
    ("apple_matrix", gemm(60, 28, 37, (32, 32, 16), SIMDGROUP[0])),
    ("nvidia_matrix", gemm(30, 28, 20, (32, 32, 16), COOPERATIVE[0])),
    ("apple_matrix", gemm(32, 64, 48, (32, 32, 24), SIMDGROUP[0], transpose_A=True)),
    ("apple_matrix", gemm(32, 64, 48, (32, 32, 24), SIMDGROUP[0], transpose_B=True, stages=1)),
    ("nvidia_matrix", gemm(32, 32, 32, (32, 32, 32), COOPERATIVE[0], transpose_A=True, transpose_B=True)),
    ("apple_matrix", gemm(32, 32, 32, (32, 32, 16), SIMDGROUP[0], clear=True)),
    ("apple_matrix", gemm(64, 32, 32, (64, 32, 16), SIMDGROUP[0], threads=256)),
    ("apple_matrix", chained("float32", "float32")),
    ("nvidia_matrix", chained("float16", "float32")),
]
IDS = [f"{n}-{arch}" for n, (arch, _) in enumerate(PRODUCTS)]


def emitted(program: TileProgram, info: TargetInfo) -> Source:
    backend = registry().get("webgpu")
    return backend.codegen(info).emit(pipeline.legalized(pipeline.make_plan(program, info), backend))


@pytest.mark.parametrize(("arch", "program"), PRODUCTS, ids=IDS)
def test_tint_takes_it(node: str, arch: str, program: TileProgram):
    source = emitted(program, INFOS[arch])
    assert "subgroupMatrixMultiplyAccumulate" in source.text
    assert set(source.launch.extra["features"]) >= {MATRIX, "subgroups"}
    assert source.launch.extra["subgroup"] == 32
    assert findings([Shader.of("product", source.text, INFOS[arch])]) == {"product": ()}


@pytest.fixture
def without_shuffles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lavapipe's subgroups are of another size."""

    def fewer(info: TargetInfo) -> Any:
        return replace(instructions(info), vectors=WgslVectors(1))

    monkeypatch.setattr(emit, "instructions", fewer)


def run(source: Source, device: Device, arrays: Sequence[np.ndarray]) -> None:
    """Run the text with plain arrays in place of matrices."""
    backend = registry().get("webgpu")
    features = tuple(f for f in source.launch.extra["features"] if f == "shader-f16")
    launch = replace(source.launch, extra={**source.launch.extra, "features": features, "subgroup": 0})
    artifact = backend.compiler(backend.info(device.target)).compile(
        replace(source, text=plain(source.text)), {}
    )
    kernel = backend.launcher(device).load(artifact, launch)
    kernel([a.ctypes.data for a in arrays], [grid for _, grid, _ in launch.entries])


# those that lavapipe's compiler is done with in a few seconds
QUICK = [n for n in range(len(PRODUCTS)) if n not in (3, 8, 12)]


@pytest.mark.parametrize(("arch", "program"), [PRODUCTS[n] for n in QUICK], ids=[IDS[n] for n in QUICK])
def test_products_are_right(without_shuffles: None, adapter: Device, arch: str, program: TileProgram):
    rng = np.random.default_rng(0)
    shapes = [(b.static_shape, b.dtype.name) for b in program.tensors]
    arrays = [rng.integers(-3, 4, shape or ()).astype(t) for shape, t in shapes]
    wanted = [a.copy() for a in arrays]
    interpreter.run(program, wanted)
    run(emitted(program, INFOS[arch]), adapter, arrays)
    np.testing.assert_allclose(arrays[2].astype(np.float32), wanted[2].astype(np.float32), rtol=1e-2)
    assert np.abs(wanted[2]).max() > 1


def test_accumulators_stay_matrices_in_a_loop():
    """They become registers once, after it."""
    lines = emitted(PRODUCTS[0][1], INFOS["apple_matrix"]).text.splitlines()
    (loop,) = (n for n, line in enumerate(lines) if line.startswith("  for (var k: i32"))
    end = lines.index("  }", loop)
    inside = [n for n, line in enumerate(lines) if "matrix_result" in line or "MatrixStore" in line]
    assert inside
    assert not [n for n in inside if loop < n < end]


@pytest.mark.parametrize(
    "program",
    [
        gemm(20, 20, 20, (20, 20, 20), SIMDGROUP[0], threads=64),
        gemm(32, 32, 20, (32, 32, 20), SIMDGROUP[0]),
        gemm(32, 32, 32, (32, 32, 32), ("float16", "float32")),
    ],
    ids=["ragged", "depth", "types"],
)
def test_what_matrices_do_not_fit_is_done_without(
    adapter: Device, without_shuffles: None, program: TileProgram
):
    source = emitted(program, INFOS["apple_matrix"])
    assert "subgroup_matrix" not in source.text
    rng = np.random.default_rng(0)
    arrays = [rng.integers(-3, 4, b.static_shape or ()).astype(b.dtype.name) for b in program.tensors]
    wanted = [a.copy() for a in arrays]
    interpreter.run(program, wanted)
    run(source, adapter, arrays)
    np.testing.assert_allclose(arrays[2], wanted[2], rtol=1e-2)


def test_an_adapter_without_the_feature(adapter: Device):
    source = emitted(PRODUCTS[0][1], INFOS["apple_matrix"])
    backend = registry().get("webgpu")
    artifact = backend.compiler(INFOS["apple_matrix"]).compile(source, {})
    with pytest.raises(BackendError, match=MATRIX) as found:
        backend.launcher(adapter).load(artifact, source.launch)
    assert "webgpu:default" in found.value.help


def test_never_chosen_by_itself():
    assert all(d.target.arch not in INFOS for d in registry().get("webgpu").devices())
