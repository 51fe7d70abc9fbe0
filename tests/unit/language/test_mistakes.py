"""Every kind of user mistake: the message, and the caret under the expression on the user's own line."""

from __future__ import annotations

import pytest

import tile_core.language as T
from tile_core.errors import KernelError
from tile_core.language.trace import PrimFunc


def mistake(kernel: PrimFunc) -> str:
    """The message of the error that building ``kernel`` raises. Its caret must be under something on a line of this file."""
    with pytest.raises(KernelError) as caught:
        _ = kernel.program
    span = caught.value.span
    assert span is not None, caught.value
    assert span.file == __file__
    return str(caught.value)


def marked(message: str) -> str:
    """The text that the first caret line marks."""
    lines = message.splitlines()
    n = next(n for n, line in enumerate(lines) if "^" in line)
    start, stop = lines[n].index("^"), lines[n].rindex("^") + 1
    return lines[n - 1][start:stop]


def test_misspelt_function() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((8,))):
        with T.Kernel(1):
            s = T.alloc_shraed((8,), "float32")
            T.copy(A, s)

    message = mistake(kernel)
    assert "T has no 'alloc_shraed'" in message
    assert "did you mean 'alloc_shared'?" in message
    assert marked(message) == "T.alloc_shraed"


def test_misspelt_name() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((8,))):
        with T.Kernel(1):
            shared = T.alloc_shared((8,), "float32")
            T.copy(A, shred)

    message = mistake(kernel)
    assert "the name 'shred' is not defined" in message
    assert "did you mean 'shared'?" in message


def test_misspelt_type() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((8,))):
        with T.Kernel(1):
            s = T.alloc_shared((8,), "flaot32")
            T.copy(A, s)

    message = mistake(kernel)
    assert "no type is named 'flaot32'" in message
    assert "did you mean 'float32'?" in message


def test_unknown_keyword() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((8,))):
        with T.Kernel(1):
            s = T.alloc_shared((8,), "float32")
            T.copy(A, s, evicton_policy="first")

    message = mistake(kernel)
    assert "evicton_policy" in message
    assert "did you mean 'eviction_policy'?" in message
    assert marked(message) == 'T.copy(A, s, evicton_policy="first")'


def test_gemm_shapes() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64, 32)), B: T.Tensor((64, 64)), C: T.Tensor((64, 64))):
        with T.Kernel(1):
            a = T.alloc_shared((64, 32), "float16")
            b = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.clear(c)
            T.gemm(a, b, c)

    message = mistake(kernel)
    assert "gemm: K differs: A = a (64, 32), B = b (64, 64), C = c (64, 64)" in message
    assert marked(message) == "T.gemm(a, b, c)"
    assert "b is declared here" in message


def test_copy_shapes() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64, 32))):
        with T.Kernel(1):
            a = T.alloc_shared((64, 16), "float32")
            T.copy(A, a)

    assert "copy: the shapes differ: A (64, 32), a (64, 16)" in mistake(kernel)


def test_constant_region_out_of_range() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((8,))):
        with T.Kernel(1):
            s = T.alloc_shared((8,), "float32")
            T.fill(s[6:12], 7)

    message = mistake(kernel)
    assert "the slice reaches 12, outside dimension 0 of s, which has size 8" in message
    assert marked(message) == "s[6:12]"


def test_constant_region_begins_outside_a_tensor() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((8,))):
        with T.Kernel(1):
            s = T.alloc_shared((8,), "float32")
            T.copy(A[9:17], s)

    message = mistake(kernel)
    assert "the slice reaches 9, outside dimension 0 of A, which has size 8" in message
    assert marked(message) == "A[9:17]"


def test_constant_index_out_of_range() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((8, 4))):
        with T.Kernel(1):
            A[3, 4] = 1.0

    message = mistake(kernel)
    assert "index 4 is out of range for dimension 1 of A, which has size 4" in message


def test_rank() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((8, 4))):
        with T.Kernel(1):
            A[3, 1, 2] = 1.0

    assert "A has 2 dimensions (8, 4), 3 indices are given" in mistake(kernel)


@pytest.mark.parametrize("what", ["try", "yield", "import", "del", "class", "match"])
def test_unsupported_python(what: str, tmp_path) -> None:
    body = {
        "try": "try:\n            pass\n        finally:\n            pass",
        "yield": "yield 1",
        "import": "import os",
        "del": "del bx",
        "class": "class C: pass",
        "match": "match bx:\n            case _:\n                pass",
    }[what]
    head = "import tile_core.language as T\n@T.prim_func\ndef kernel(A: T.Tensor((8,))):\n    with T.Kernel(1) as bx:\n"
    source = f"{head}        {body}\n"
    file = tmp_path / "kernels.py"
    file.write_text(source)
    scope: dict[str, object] = {}
    exec(compile(source, str(file), "exec"), scope)
    with pytest.raises(KernelError) as caught:
        _ = scope["kernel"].program  # type: ignore[attr-defined]
    assert f"`{what}` is not possible in a kernel" in str(caught.value)
    assert caught.value.span is not None
    assert caught.value.span.line == 5


def test_use_before_write() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64))):
        with T.Kernel(1):
            a = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.copy(A, a)
            T.gemm(a, a, c)
            T.copy(c, C)

    message = mistake(kernel)
    assert "c is read before anything is written to it" in message
    assert "clear_accum=True" in message
    assert marked(message) == "T.gemm(a, a, c)"


def test_tile_op_in_parallel() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64, 64))):
        with T.Kernel(1):
            a = T.alloc_shared((64, 64), "float32")
            for i in T.Parallel(64):
                T.copy(A, a)

    message = mistake(kernel)
    assert "T.copy inside T.Parallel" in message
    assert marked(message) == "T.copy(A, a)"


def test_value_of_a_branch() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64,))):
        with T.Kernel(2) as bx:
            if bx > 0:
                offset = 1
            else:
                offset = 2
            A[offset] = 1.0

    message = mistake(kernel)
    assert "offset has no value here" in message
    assert "T.alloc_var" in message


def test_value_carried_by_a_loop() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64,))):
        with T.Kernel(2):
            total = 0
            for i in T.serial(4):
                total = total + i
            A[0] = total

    message = mistake(kernel)
    assert "total has no value here" in message
    assert marked(message).strip().startswith("total")


def test_loop_variable_outside_its_loop() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64,))):
        with T.Kernel(2):
            for i in T.serial(4):
                A[i] = 1.0
            A[i] = 2.0

    assert "i is used outside of the loop or branch that gives it a value" in mistake(kernel)


def test_truth_of_a_device_value_in_a_helper() -> None:
    def helper(x):
        return 1 if x > 3 else 2

    @T.prim_func
    def kernel(A: T.Tensor((64,))):
        with T.Kernel(2) as bx:
            A[bx] = helper(bx)

    message = mistake(kernel)
    assert "@T.macro" in message
    assert marked(message) == "helper(bx)"


def test_unknown_dimension() -> None:
    n = T.dynamic("n")

    @T.prim_func
    def kernel(A: T.Tensor((64,))):
        with T.Kernel(n) as bx:
            A[bx] = 1.0

    assert "the dimension n is in the shape of no tensor parameter" in mistake(kernel)


def test_no_annotation() -> None:
    @T.prim_func
    def kernel(A):
        with T.Kernel(1):
            A[0] = 1.0

    assert "parameter A has no annotation" in mistake(kernel)


def test_nested_kernels() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64,))):
        with T.Kernel(1), T.Kernel(2):
            A[0] = 1.0

    assert "a T.Kernel stands inside another one" in mistake(kernel)


def test_break_of_parallel() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64,))):
        with T.Kernel(1):
            for i in T.Parallel(64):
                if A[i] > 0:
                    break

    assert "T.Parallel: its iterations have no order" in mistake(kernel)


def test_global_operand_of_gemm() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64, 64)), C: T.Tensor((64, 64))):
        with T.Kernel(1):
            c = T.alloc_fragment((64, 64), "float32")
            T.clear(c)
            T.gemm(A, A, c)

    assert "A of the gemm, A, lives in global memory" in mistake(kernel)


def test_region_as_value() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64, 64))):
        with T.Kernel(1):
            A[0, 0] = A[1] + 1

    message = mistake(kernel)
    assert "a region (64,) of A is used where a single value is needed" in message
    assert marked(message) == "A[1]"


def test_many_to_one_dimension_of_tile() -> None:
    n = T.dynamic("n")

    @T.prim_func
    def kernel(A: T.Tensor((n,))):
        with T.Kernel(1):
            a = T.alloc_shared((n,), "float32")
            T.copy(A, a)

    assert "the shape (n,) of an on-chip tile is not known" in mistake(kernel)


def test_macro_error_shows_both_places() -> None:
    @T.macro
    def inner(tile):
        T.fill(tile[0:99], 1)

    @T.prim_func
    def kernel(A: T.Tensor((64,))):
        with T.Kernel(1):
            a = T.alloc_shared((64,), "float32")
            inner(a)

    message = mistake(kernel)
    assert "outside dimension 0 of a" in message
    assert "called from" in message


def test_wide_characters_do_not_move_the_caret() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64,))):
        with T.Kernel(1):
            名前 = T.alloc_shared((64,), "float32"); T.fill(名前[0:99], 1)  # fmt: skip  # noqa: E702

    with pytest.raises(KernelError) as caught:
        _ = kernel.program
    shown = str(caught.value).splitlines()
    assert "^" * len("名前[0:99]".encode("gb2312")) in shown[3 if "^" in shown[3] else 4]


def test_two_tensors_over_a_pointer_that_is_written() -> None:
    @T.prim_func
    def kernel(P: T.ptr("float32"), C: T.Tensor((8, 8))):
        with T.Kernel(1):
            rows = T.make_tensor(P, (8, 8), "float32")
            flat = T.make_tensor(P, (64,), "float32")
            for i, j in T.Parallel(8, 8):
                rows[i, j] = 1.0
            for i, j in T.Parallel(8, 8):
                C[j, i] = flat[i * 8 + j]

    message = mistake(kernel)
    assert "rows and flat are the same memory, and one of them is written" in message
    assert "T.view(rows, shape, dtype)" in message


def test_two_tensors_over_a_pointer_that_is_only_read() -> None:
    @T.prim_func
    def kernel(P: T.ptr("float32"), C: T.Tensor((8, 8))):
        with T.Kernel(1):
            rows = T.make_tensor(P, (8, 8), "float32")
            flat = T.make_tensor(P, (64,), "float32")
            for i, j in T.Parallel(8, 8):
                C[j, i] = flat[i * 8 + j] + rows[i, j]

    assert kernel.program.name == "kernel"
