"""Python's control flow in kernels, run by the interpreter and compared with plain Python."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core.language as T
from tile_core.interpreter import run
from tile_core.language.trace import PrimFunc
from tile_core.program import Alloc, For, If, While
from tile_core.program.visit import statements


def out(kernel: PrimFunc, *arguments: np.ndarray, size: int = 8, dtype: str = "float32") -> list[float]:
    result = np.zeros(size, dtype)
    run(kernel.program, [*arguments, result])
    return result.tolist()


def test_range_is_a_loop_of_the_device() -> None:
    @T.prim_func
    def kernel(C: T.Tensor((8,))):
        with T.Kernel(1):
            for i in range(1, 8, 3):
                C[i] = i

    assert out(kernel) == [0, 1, 0, 0, 4, 0, 0, 7]
    assert sum(isinstance(s, For) for s in statements(kernel.program.body)) == 1


def test_negative_step() -> None:
    @T.prim_func
    def kernel(C: T.Tensor((8,))):
        with T.Kernel(1):
            n = T.alloc_var("int32", 0)
            for i in T.serial(7, -1, -2):
                C[i] = n
                n += 1

    assert out(kernel) == [0, 3, 0, 2, 0, 1, 0, 0]


def test_python_values_are_iterated_while_building() -> None:
    @T.prim_func
    def kernel(C: T.Tensor((8,))):
        with T.Kernel(1):
            for n, value in enumerate([3, 1, 2]):
                if value == 1:
                    continue
                C[n] = value

    assert out(kernel)[:3] == [3, 0, 2]
    assert not any(isinstance(s, (For, If)) for s in statements(kernel.program.body))


def test_break_and_continue() -> None:
    @T.prim_func
    def kernel(C: T.Tensor((8,))):
        with T.Kernel(1):
            for i in T.serial(8):
                if i == 2:
                    continue
                if i > 4:
                    break
                C[i] = 1

    assert out(kernel) == [1, 1, 0, 1, 1, 0, 0, 0]


def test_while_with_a_cell() -> None:
    @T.prim_func
    def kernel(C: T.Tensor((8,))):
        with T.Kernel(1):
            n = T.alloc_var("int32", 1)
            count = T.alloc_var("int32")
            count = 0
            while n < 100 and count < 5:
                C[count] = n
                n = n * 3
                count += 1

    assert out(kernel) == [1, 3, 9, 27, 81, 0, 0, 0]


def test_while_true() -> None:
    @T.prim_func
    def kernel(C: T.Tensor((8,))):
        with T.Kernel(1):
            n = T.alloc_var("int32", 0)
            while True:
                if n >= 3:
                    break
                C[n] = 1
                n += 1

    assert out(kernel) == [1, 1, 1, 0, 0, 0, 0, 0]
    assert any(isinstance(s, While) for s in statements(kernel.program.body))


def test_static_while() -> None:
    @T.prim_func
    def kernel(C: T.Tensor((8,))):
        with T.Kernel(1):
            n = 4
            while n > 0:
                C[n] = n
                n //= 2

    assert out(kernel) == [0, 1, 2, 0, 4, 0, 0, 0]


def test_if_else_on_the_device() -> None:
    @T.prim_func
    def kernel(C: T.Tensor((8,))):
        with T.Kernel(8) as bx:
            if bx < 2:
                C[bx] = 1
            elif bx == 5:
                C[bx] = 2
            else:
                C[bx] = 3

    assert out(kernel) == [1, 1, 3, 3, 3, 2, 3, 3]


@pytest.mark.parametrize("flag", [True, False])
def test_static_conditions_are_folded(flag: bool) -> None:
    @T.prim_func
    def kernel(C: T.Tensor((8,))):
        with T.Kernel(1):
            if flag:
                value = 1
            else:
                value = 2
            C[0] = value

    assert out(kernel)[0] == (1 if flag else 2)
    assert not any(isinstance(s, If) for s in statements(kernel.program.body))


def test_ternary_chain_and_logic() -> None:
    @T.prim_func
    def kernel(C: T.Tensor((8,))):
        with T.Kernel(8) as bx:
            inside = 2 <= bx < 6 and not bx == 3
            C[bx] = 1 if inside or bx == 7 else 0

    assert out(kernel) == [0, 0, 1, 0, 1, 1, 0, 1]


def test_values_are_read_when_they_are_bound() -> None:
    @T.prim_func
    def kernel(C: T.Tensor((8,))):
        with T.Kernel(1):
            C[0] = 5
            old = C[0]
            C[0] = 7
            C[1] = old

    assert out(kernel)[:2] == [7, 5]


def test_swap_of_elements() -> None:
    @T.prim_func
    def kernel(C: T.Tensor((8,))):
        with T.Kernel(1):
            C[0] = 1
            C[1] = 2
            C[0], C[1] = C[1], C[0]

    assert out(kernel)[:2] == [2, 1]


def test_negative_index_and_slices() -> None:
    @T.prim_func
    def kernel(C: T.Tensor((8,))):
        with T.Kernel(1):
            s = T.alloc_shared((2, 8), "float32")
            T.fill(s, 1)
            s[1, 2:6] = 3
            s[0, -1] = 9
            T.copy(s[1, :], C)
            C[-1] = s[0, -1]

    assert out(kernel) == [1, 1, 3, 3, 3, 3, 1, 9]


def test_augmented_assignments() -> None:
    @T.prim_func
    def kernel(C: T.Tensor((8,))):
        with T.Kernel(1):
            C[0] = 8
            C[0] += 2
            C[0] *= 3
            C[0] -= 1
            C[0] /= 2
            n = 5
            n <<= 1
            C[1] = n

    assert out(kernel)[:2] == [14.5, 10]


def test_annotated_names_convert() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((8,)), C: T.Tensor((8,))):
        with T.Kernel(1):
            x: T.int32 = A[0]
            C[0] = x

    assert out(kernel, np.full(8, 2.75, np.float32))[0] == 2


def test_macros_inline_and_return() -> None:
    @T.macro
    def twice(x):
        y = x * 2
        return y

    @T.macro
    def store(tile, i, value):
        if i > 0:
            tile[i] = value

    @T.prim_func
    def kernel(C: T.Tensor((8,))):
        with T.Kernel(1):
            for i in T.serial(4):
                store(C, i, twice(i))

    assert out(kernel)[:4] == [0, 2, 4, 6]


def test_functions_inside_kernels() -> None:
    @T.prim_func
    def kernel(C: T.Tensor((8,))):
        with T.Kernel(8) as bx:

            def square(x):
                return x * x

            C[bx] = square(bx)

    assert out(kernel)[3] == 9


def test_grid_of_two_dimensions() -> None:
    @T.prim_func
    def kernel(C: T.Tensor((2, 4))):
        with T.Kernel(4, 2) as (bx, by):
            C[by, bx] = by * 10 + bx

    result = np.zeros((2, 4), np.float32)
    run(kernel.program, [result])
    assert result.tolist() == [[0, 1, 2, 3], [10, 11, 12, 13]]


def test_serial_unroll_vectorized_grid() -> None:
    @T.prim_func
    def kernel(C: T.Tensor((8,))):
        with T.Kernel(1):
            for i, j in T.grid(2, 4):
                C[i * 4 + j] = 1
            for i in T.unroll(4):
                C[i] += 1
            for i in T.vectorized(8):
                C[i] *= 2

    assert out(kernel) == [4, 4, 4, 4, 2, 2, 2, 2]


@pytest.mark.parametrize(
    ("domain", "blocks", "group"), [((4, 3), 5, 2), ((7, 5), 4, 8), ((3, 3), 16, 2), ((5, 2), 3, 3)]
)
def test_persistent_visits_every_tile_once(domain: tuple[int, int], blocks: int, group: int) -> None:
    @T.prim_func
    def kernel(C: T.Tensor(domain)):
        with T.Kernel(blocks) as b:
            for i, j in T.Persistent(domain, blocks, b, group_size=group):
                C[i, j] += 1

    result = np.zeros(domain, np.float32)
    run(kernel.program, [result])
    assert (result == 1).all()


def test_thread_numbers() -> None:
    @T.prim_func
    def kernel(C: T.Tensor((8,))):
        with T.Kernel(1, threads=8):
            tx = T.get_thread_binding()
            s = T.alloc_shared((8,), "float32")
            mine = T.alloc_local((2,), "float32")
            mine[0] = tx
            mine[1] = mine[0] * 2
            s[tx] = mine[1]
            T.sync_threads()
            C[tx] = s[7 - tx]

    assert out(kernel) == [14, 12, 10, 8, 6, 4, 2, 0]


def test_barrier_after_atomic_on_shared() -> None:
    @T.prim_func
    def kernel(C: T.Tensor((64,))):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            s = T.alloc_shared((64,), "float32")
            s[tx] = tx
            T.sync_threads()
            T.atomic_add(s[tx], 1)
            T.sync_threads()
            C[tx] = s[tx ^ 32]

    assert out(kernel, size=64) == [(t ^ 32) + 1 for t in range(64)]


def test_closures_are_captured() -> None:
    def make(value: int) -> PrimFunc:
        @T.prim_func
        def kernel(C: T.Tensor((8,))):
            with T.Kernel(1):
                C[0] = value

        return kernel

    assert out(make(3))[0] == 3
    assert out(make(4))[0] == 4


def test_comprehensions_and_python_containers() -> None:
    @T.prim_func
    def kernel(C: T.Tensor((8,))):
        with T.Kernel(1):
            table = {"a": 2, "b": 3}
            values = [x * 2 for x in range(4) if x != 1]
            for n, v in enumerate(values):
                C[n] = v + table["a"]

    assert out(kernel)[:3] == [2, 6, 8]


def test_buffers_are_named_after_what_they_are_assigned_to() -> None:
    @T.prim_func
    def kernel(C: T.Tensor((8,))):
        with T.Kernel(1):
            top, total = (T.alloc_fragment((8,), "float32") for _ in range(2))
            shift, (scale, rest) = (
                T.alloc_fragment((8,), "float32"),
                [T.alloc_fragment((8,), "float32") for _ in range(2)],
            )
            last = T.alloc_fragment((8,), "float32")
            for t in (top, total, shift, scale, rest, last):
                T.fill(t, 1)
            T.copy(last, C)

    names = [s.buffer.name for s in statements(kernel.program.body) if isinstance(s, Alloc)]
    assert names == ["top", "total", "shift", "fragment", "fragment", "last"]
    assert out(kernel) == [1] * 8
