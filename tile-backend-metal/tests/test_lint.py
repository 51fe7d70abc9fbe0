"""Each rule of the lint: a kernel that keeps all of them, and for each rule changes that it finds."""

from __future__ import annotations

import pytest

from tile_backend_metal.compiler.lint import RULES, faults

GOOD = """#include <metal_stdlib>
using namespace metal;
// double, goto and std:: stand in a comment only
struct pair { float a; float b; };
template <class T> static inline T twice(device T* at) { return at[0] + at[0]; }
[[kernel, max_total_threads_per_threadgroup(64)]]
void f(
    device float* A [[buffer(0)]],
    constant int& n [[buffer(1)]],
    uint3 tile_block [[threadgroup_position_in_grid]],
    uint tile_thread [[thread_index_in_threadgroup]]) {
  alignas(16) threadgroup uchar tile_arena[1024];
  threadgroup float* const t = reinterpret_cast<threadgroup float*>(tile_arena + 0);
  t[tile_thread] = 1.5f;
  metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
  if (int(tile_thread) < n * 2 && n > 0) A[tile_thread] = t[63 - tile_thread] + twice(&A[0]);
}
"""

# rule, what is changed, into what, words of the finding
BROKEN = [
    ("words", "float a;", "double a;", "no double"),
    ("words", "1.5f;", "(long long)1;", "no long long"),
    ("words", "n * 2", "n * 2LL", "literal of long long"),
    ("words", "t[tile_thread] = 1.5f;", "goto end;", "not in MSL"),
    ("words", "t[tile_thread] = 1.5f;", "throw 1;", "no exceptions"),
    ("words", "t[tile_thread] = 1.5f;", "new int;", "not in MSL"),
    ("words", "struct pair {", "struct pair : base {", "no derived classes"),
    ("words", "float a;", "virtual float a();", "not in MSL"),
    ("words", "float a;", "std::size_t a;", "no standard library"),
    ("words", "float a;", "thread_local float a;", "not in MSL"),
    ("words", "t[tile_thread] = 1.5f;", 'asm("nop");', "no assembly"),
    ("words", "t[tile_thread] = 1.5f;", 'printf("x");', "no printf"),
    ("words", "t[tile_thread] = 1.5f;", "auto g = [&](int x) { return x; };", "no lambda"),
    ("versions", "float a;", "bfloat a;", "`bfloat` is there since 3.1, this is 3.0"),
    ("versions", "t[tile_thread] = 1.5f;", "atomic_thread_fence();", "since 3.2"),
    ("address spaces", "device float* A", "float* A", "`float*` has no address space"),
    ("address spaces", "constant int& n", "const int& n", "`int&` has no address space"),
    ("address spaces", "reinterpret_cast<threadgroup float*>", "reinterpret_cast<float*>", "`float*`"),
    ("casts", "reinterpret_cast<threadgroup float*>", "reinterpret_cast<device float*>", "from device to threadgroup"),
    ("calls", "t[tile_thread] = 1.5f;", "tile_move4_device_from_threadgroup(&t[n & 1], &t[0]);", "`t` lies in threadgroup"),
    ("calls", "t[tile_thread] = 1.5f;", "float r[4]; tile_fetch16_thread_from_device(&r[0], &r[n], n > 0);", "`r` lies in thread"),
    ("calls", "t[tile_thread] = 1.5f;", "tile_atomic_add_device(&t[(n) & 3], 1.0f);", "not in device"),
    ("calls", "t[tile_thread] = 1.5f;", "tile_simdgroup_multiply(&t[0], &t[1], &A[2]);", "`A` lies in device"),
    ("attributes", "[[thread_index_in_threadgroup]]", "[[thread_index_in_group]]", "`thread_index_in_group`"),
    ("library", "metal::threadgroup_barrier", "metal::threadgroup_barier", "threadgroup_barier"),
    ("library", "1.5f", "metal::erf(1.5f)", "metal::erf"),
    ("literals", "1.5f", "1.5", "`1.5` has no suffix"),
    ("threads", "threadgroup(64)", "threadgroup(2048)", "2048 threads in a threadgroup, at most 1024"),
    ("threadgroup memory", "uchar tile_arena[1024]", "float tile_arena[8193]", "32772 bytes"),
    ("buffers", "[[buffer(1)]]", "[[buffer(2)]]", "buffers [0, 2]"),
    ("recursion", "return at[0] + at[0]", "return twice(at)", "`twice` calls itself"),
    ("variables", "struct pair {", "static float seen = 1.0f;\nstruct pair {", "is not constant"),
    ("characters", "1.5f", "1.5f /* */ + \u03c0", "not ASCII"),
]  # fmt: skip


def test_a_good_kernel() -> None:
    assert faults(GOOD, "3.0") == ()


@pytest.mark.parametrize(
    ("rule", "old", "new", "text"), BROKEN, ids=[f"{b[0]}-{n}" for n, b in enumerate(BROKEN)]
)
def test_found(rule: str, old: str, new: str, text: str) -> None:
    assert old in GOOD
    found = faults(GOOD.replace(old, new, 1), "3.0")
    assert any(f.rule == rule and text in f.text for f in found), found


def test_calls_that_are_right() -> None:
    more = """half r[4];
  tile_move8_thread_from_device(&r[0], &A[tile_thread & 1]);
  tile_fetch8_threadgroup_from_thread(&t[(n & 3)], &r[0], n > 0);
  const float seen = tile_atomic_add_threadgroup(&t[0], 1.0f);
  tile_simdgroup_multiply(&r[0], &r[n & 2], &r[2]);"""
    assert faults(GOOD.replace("t[tile_thread] = 1.5f;", more), "3.0") == ()


def test_every_rule_fires() -> None:
    assert {b[0] for b in BROKEN} == set(RULES)


def test_the_line_is_that_of_the_source() -> None:
    (found,) = faults(GOOD.replace("t[tile_thread] = 1.5f;", "double x;"), "3.0")
    assert found.line == 14
    assert GOOD.split("\n")[13].strip() == "t[tile_thread] = 1.5f;"


def test_newer_words_are_right_in_a_newer_language_or_behind_its_number() -> None:
    newer = GOOD.replace("float a;", "bfloat a;")
    assert faults(newer, "3.1") == ()
    assert (
        faults(
            GOOD.replace("struct pair", "#if __METAL_VERSION__ >= 310\nbfloat x();\n#endif\nstruct pair"),
            "3.0",
        )
        == ()
    )


def test_a_shared_total_over_several_arrays() -> None:
    more = "alignas(16) threadgroup uchar tile_arena[32000];\n  threadgroup half more[512];"
    (found,) = faults(GOOD.replace("alignas(16) threadgroup uchar tile_arena[1024];", more), "3.0")
    assert "33024 bytes" in found.text
