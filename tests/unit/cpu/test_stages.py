"""The roles one by one: text, object, launcher, targets, checks; and that a warm kernel needs no TVM."""

from __future__ import annotations

import hashlib
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from cpu_programs import (
    BACKEND,
    allocs,
    at,
    build,
    dim,
    fragment,
    launch,
    plan,
    program,
    region,
    tensor,
    var,
    whole,
)

from tile_core import settings
from tile_core.backend import Artifact
from tile_core.cpu.machine import PORTABLE, host
from tile_core.errors import BackendError
from tile_core.expr import ceildiv
from tile_core.hardware import Target
from tile_core.program import Copy, Gemm, Parallel, Reduce, Store


def softmax_like():
    """A program with most kinds of steps."""
    m = dim("m")
    a, b = tensor("A", (m, 96), "float16"), tensor("B", (m, 96))
    f, row, square = fragment("F", (32, 96)), fragment("R", (32,)), fragment("Q", (32, 32))
    bx, i, j = var("bx"), var("i"), var("j")
    body = [
        *allocs(f, row, square),
        Copy(region(a, (bx * 32, 32), (0, 96)), whole(f)),
        Reduce("max", whole(f), whole(row), 1),
        Parallel((i, j), (32, 96), (Store(f, (i, j), at(f, i, j) - at(row, i)),)),
        Gemm(whole(f), whole(f), whole(square), transpose_b=True, clear=True),
        Copy(whole(f), region(b, (bx * 32, 32), (0, 96))),
    ]
    return program([a, b], launch(body, (bx,), (ceildiv(m, 32),)), name="soft.max")


@pytest.fixture(scope="module")
def made():
    return build(softmax_like())


def test_text_is_deterministic(made):
    one = plan(softmax_like())
    emit = BACKEND.codegen(one.info).emit
    assert emit(one) == emit(one)
    code = """
import hashlib, sys
sys.path.insert(0, sys.argv[1])
import test_stages
print(hashlib.sha256(test_stages.build(test_stages.softmax_like()).source.text.encode()).hexdigest())
"""
    folder = str(Path(__file__).parent)
    command = [sys.executable, "-c", code, folder]
    other = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    assert other == hashlib.sha256(made.source.text.encode()).hexdigest()


def test_text_has_no_addresses_and_no_debug_information(made):
    text = made.source.text
    assert "0x5" not in text
    assert "!dbg" not in text
    assert "fmuladd.f32" not in text
    assert made.source.language == "llvm"
    assert made.source.suffix == ".ll"


def test_launch_specification(made):
    spec = made.source.launch
    assert [(p.name, p.kind, p.shape, p.written) for p in spec.params] == [
        ("A", "tensor", ("m", 96), False),
        ("B", "tensor", ("m", 96), True),
        ("m", "dim", (), False),
    ]
    ((name, grid, _),) = spec.entries
    assert name == "soft_max_0"
    assert eval(grid[0], {"m": 33}) == 2


def test_values_survive_a_file(made):
    """The cache stores artifacts and specifications."""
    artifact, spec = pickle.loads(pickle.dumps((made.artifact, made.source.launch)))
    kernel = BACKEND.launcher(BACKEND.device()).load(artifact, spec)
    x = np.random.default_rng(0).standard_normal((50, 96)).astype(np.float16)
    y = np.zeros((50, 96), np.float32)
    kernel([x.ctypes.data, y.ctypes.data, 50], [(2,)])
    wide = x.astype(np.float32)
    assert np.array_equal(y, wide - wide.max(1, keepdims=True))


def test_warm_kernel_imports_neither_tvm_nor_torch(made, tmp_path):
    file = tmp_path / "kernel"
    file.write_bytes(pickle.dumps((made.artifact, made.source.launch)))
    code = f"""
import ctypes, pickle, sys
from tile_core.cpu.backend import CpuBackend
artifact, spec = pickle.loads(open({str(file)!r}, "rb").read())
kernel = CpuBackend().launcher(None).load(artifact, spec)
x, y = (ctypes.c_uint16 * 96)(), (ctypes.c_float * 96)(*[1.0] * 96)
kernel([ctypes.addressof(x), ctypes.addressof(y), 1], [(1,)])
assert list(y) == [0.0] * 96
heavy = sorted({{m.partition(".")[0] for m in sys.modules}} & {{"tvm", "tvm_ffi", "torch", "z3"}})
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_plugin_is_light():
    code = """
import sys
import tile_core.cpu.plugin
heavy = sorted({m.partition(".")[0] for m in sys.modules} & {"tvm", "torch", "z3", "llvmlite"})
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("arch", list(PORTABLE))
def test_portable_levels_compile(arch):
    one = plan(softmax_like(), arch)
    source = BACKEND.codegen(one.info).emit(one)
    artifact = BACKEND.compiler(one.info).compile(source, {})
    assert artifact.data[:4] == b"\x7fELF"
    if arch.startswith("x86_64") and PORTABLE[arch].features <= host().features:
        kernel = BACKEND.launcher(BACKEND.device()).load(artifact, source.launch)
        x = np.random.default_rng(0).standard_normal((32, 96)).astype(np.float16)
        y = np.zeros((32, 96), np.float32)
        kernel([x.ctypes.data, y.ctypes.data, 32], [(1,)])
        wide = x.astype(np.float32)
        assert np.array_equal(y, wide - wide.max(1, keepdims=True))


def test_wrong_processor_is_refused(made):
    spec = made.source.launch
    foreign = type(spec)(spec.params, spec.entries, spec.outputs, {**spec.extra, "features": ("sve9",)})
    with pytest.raises(BackendError, match="sve9"):
        BACKEND.launcher(BACKEND.device()).load(Artifact("object", b""), foreign)


def test_compile_without_optimisation(made):
    run = build(softmax_like(), optimize=0)
    x = np.ones((3, 96), np.float16)
    y = np.ones((3, 96), np.float32)
    run(x, y, m=3)
    assert not y.any()


def test_targets():
    infos = BACKEND.targets()
    assert infos[0].features == host().features
    assert not infos[0].simt
    for info in infos:
        assert Target.parse(str(info.target)) == info.target
        assert BACKEND.info(info.target) == info


def test_fingerprint_names_the_processor(made):
    text = BACKEND.compiler(BACKEND.targets()[0]).fingerprint()
    assert "llvmlite" in text
    assert host().cpu in text
    assert text == BACKEND.compiler(BACKEND.targets()[0]).fingerprint()


def test_checks():
    assert [c.run().level for c in BACKEND.checks()] == ["ok", "ok"]


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_worker_threads(threads):
    n = 501
    out = tensor("out", (n,), "int32")
    bx = var("bx")
    run = build(program([out], launch([Store(out, (bx,), bx)], (bx,), (n,))))
    y = np.zeros(n, np.int32)
    with settings.scope(threads=threads):
        run(y)
    assert np.array_equal(y, np.arange(n))


def test_calls_from_several_threads(made):
    from concurrent.futures import ThreadPoolExecutor

    def one(seed):
        x = np.random.default_rng(seed).standard_normal((200, 96)).astype(np.float16)
        y = np.zeros((200, 96), np.float32)
        made(x, y, m=200)
        wide = x.astype(np.float32)
        return np.array_equal(y, wide - wide.max(1, keepdims=True))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(one, range(20)))
