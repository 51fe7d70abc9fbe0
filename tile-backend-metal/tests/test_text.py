"""What generated MSL looks like: which sections it has, how it names its arguments, and what its barriers order."""

from __future__ import annotations

import re
from typing import Any

import pytest

import tile_core.language as T
from tile_backend_metal.backend import MetalBackend
from tile_core.backend import Source
from tile_core.hardware import Target
from tile_core.testing import stages
from tile_core.testing.kernels import BY_NAME, Case

METAL = MetalBackend()
SHARED_ONLY = "threadgroup_barrier(metal::mem_flags::mem_threadgroup)"
BOTH = "threadgroup_barrier(metal::mem_flags::mem_device | metal::mem_flags::mem_threadgroup)"


def emitted(case: Case | Any, arch: str = "apple9") -> Source:
    own = case if isinstance(case, Case) else Case("made", lambda: case, frozenset())
    return stages.emit(own, METAL, METAL.info(Target("metal", arch)))


def test_arguments_stand_in_their_buffers() -> None:
    head = emitted(BY_NAME["dynamic-33x17"]).text.split("[[kernel", 1)[1].split("{")[0]
    assert re.findall(r"(\S+ \S+) (\w+) \[\[buffer\((\d)\)\]\]", head) == [
        ("device float*", "A", "0"),
        ("device float*", "B", "1"),
        ("constant int&", "m", "2"),
        ("constant int&", "n", "3"),
    ]
    assert "max_total_threads_per_threadgroup(128)" in head


def test_a_source_has_what_it_calls() -> None:
    plain = emitted(BY_NAME["copy-float32-float32-even"]).text
    words = (
        "tile_simdgroup_multiply",
        "tile_atomic_",
        "tile_shuffle_",
        "bfloat16_to_float",
        "tile_erf",
        "tile_ieee_",
    )
    assert not [w for w in words if w in plain]
    assert "tile_erf" in emitted(BY_NAME["math-float32"]).text
    histogram = emitted(BY_NAME["histogram"]).text
    assert "tile_atomic_add_device" in histogram
    assert "tile_atomic_add_threadgroup" not in histogram


def test_the_launcher_is_told_of_products() -> None:
    assert emitted(BY_NAME["gemm-float16-even"]).launch.extra["ordered"] is True
    assert "ordered" not in emitted(BY_NAME["softmax-float32"]).launch.extra


def test_barriers_order_what_threads_share() -> None:
    text = emitted(BY_NAME["gemm-float16-even"]).text
    assert SHARED_ONLY in text
    assert BOTH not in text

    @T.prim_func
    def back_and_forth(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            for i in T.Parallel(64):
                B[i] = A[i] * 2
            for i in T.Parallel(64):
                A[i] = B[(i + 1) % 64]

    text = emitted(back_and_forth).text
    assert BOTH in text
    assert SHARED_ONLY not in text


def test_barriers_order_what_a_loop_writes_twice() -> None:
    """One statement, whose threads change places from one iteration to the next."""

    @T.prim_func
    def turning(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            for k in T.serial(3):
                for i in T.Parallel(64):
                    B[(i + k) % 64] = A[i] * k

    text = emitted(turning).text
    assert BOTH in text
    assert SHARED_ONLY not in text


def test_names_that_msl_has_taken() -> None:
    @T.prim_func
    def main(
        device: T.Tensor((64,), "float32"),
        half: T.Tensor((64,), "float32"),
        tile_bits: T.Tensor((64,), "float32"),
    ):
        with T.Kernel(1, threads=64):
            for threadgroup in T.Parallel(64):
                tile_bits[threadgroup] = device[threadgroup] + half[threadgroup]

    text = emitted(main).text.split("[[kernel", 1)[1]
    assert "device float* device_2 [[buffer(0)]]" in text
    assert "device float* half_2 [[buffer(1)]]" in text
    assert "device float* tile_bits_2 [[buffer(2)]]" in text


TAKEN = """
    nullptr xor bitand decltype static_assert thread_local __restrict NULL INFINITY FLT_MAX M_PI_F INT_MAX HALF_MAX half4 float4x4
    uint3 ray_data tile_move16_device_from_thread tile_atomic_add_device tile_simdgroup_multiply TILE_NAN bfloat tile_thread
    tile_shuffle_xor tile_op_add float16_to_float simd
"""


@pytest.mark.parametrize("name", TAKEN.split())
def test_a_name_that_is_taken_gets_a_number(name: str) -> None:
    n = T.dynamic(name)

    @T.prim_func
    def main(A: T.Tensor((n,), "float32")):
        with T.Kernel(1, threads=32):
            T.fill(A, 0)

    text = emitted(main).text.split("[[kernel", 1)[1]
    assert f"constant int& {name}_2 [[buffer(1)]]" in text


def test_names_in_other_alphabets() -> None:
    @T.prim_func
    def größe(Ä: T.Tensor((64,), "float32"), Ö: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            T.copy(Ä, Ö)

    source = emitted(größe)
    assert source.text.isascii()
    assert source.launch.entries[0][0] == "gr__e_0"
    assert (
        "void gr__e_0(\n    device float* _ [[buffer(0)]],\n    device float* __2 [[buffer(1)]]"
        in source.text
    )
