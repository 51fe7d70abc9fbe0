"""Which copies of a loop run ahead of it, what the steps wait for, and which barriers are left to others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tile_core.language as T
from tile_core.dtypes import INT32, dtype
from tile_core.errors import InternalError
from tile_core.expr import Buffer, Expr, Load, Space, Var, const
from tile_core.hardware import Target
from tile_core.inference.infer import infer
from tile_core.lowering.simt.barriers import Pending, PipelinedFor, synchronised
from tile_core.lowering.simt.context import Context
from tile_core.lowering.simt.instructions import Instructions
from tile_core.lowering.simt.pipeline import Pipeline, Step, pipelines
from tile_core.program import Alloc, Invoke, Place, Stmt, Store, Sync
from tile_core.program.visit import statements
from tile_core.registry import registry

F16 = dtype("float16")


class Copies:
    """Copies of three sizes; their statements are of no interest here."""

    sizes = (16, 8, 4)
    run = 1

    def copy(self, size: int, to: Place, source: Place, taken: Expr | None) -> Stmt:
        return Invoke("copy", (to, source))

    def commit(self) -> Stmt:
        return Invoke("commit")

    def wait(self, left: int) -> Stmt:
        return Invoke("wait")


def found(kernel: Any) -> dict[str, tuple[Pipeline, ...]]:
    """Names of the tiles that are filled ahead, with the pipelines of the only launch."""
    program = kernel.program
    target = Target.parse("cuda:sm_80")
    plan = infer(program, registry().get(target.backend).info(target))
    (launch,) = plan.program.launches
    thread = Var("thread", INT32, 900)
    context = Context(plan, launch, thread, Instructions(copies=Copies()))
    context.viewed = frozenset(
        s.buffer.storage for s in statements(launch.body) if isinstance(s, Alloc) and s.buffer.source
    )
    made = tuple(pipelines(context, launch).values())
    return {b.name: made for p in made for b in p.depths}


def product(body: Callable[..., None], *, n: int = 64, stages: int = 3, dtype: str = "float16") -> Any:
    """A loop along k with ``body(A, B, a, b, c, ko)`` in it."""

    @T.prim_func
    def main(A: T.Tensor((64, 64), dtype), B: T.Tensor((64, n), dtype), C: T.Tensor((32, n), "float32")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((32, 16), dtype)
            b = T.alloc_shared((16, n), dtype)
            c = T.alloc_fragment((32, n), "float32")
            T.clear(c)
            for ko in T.Pipelined(4, num_stages=stages):
                body(A, B, a, b, c, ko)
            T.copy(c, C)

    return main


def plain(A: Any, B: Any, a: Any, b: Any, c: Any, ko: Any) -> None:
    T.copy(A[0:32, ko * 16 : ko * 16 + 16], a)
    T.copy(B[ko * 16 : ko * 16 + 16, :], b)
    T.gemm(a, b, c)


def test_steps_of_a_product() -> None:
    ahead = found(product(plain))
    assert set(ahead) == {"a", "b"}
    (p,) = ahead["a"]
    assert p.last == 2 and set(p.depths.values()) == {3}
    assert [(s.position, s.stage, s.wait, s.meet, s.ahead) for s in p.steps] == [
        (0, 0, 2, True, True),
        (1, 0, None, False, True),
        (2, 2, None, False, False),
    ]


@pytest.mark.parametrize(("stages", "left"), [(2, 0), (3, 2), (4, 4)])
def test_groups_that_may_be_on_their_way(stages: int, left: int) -> None:
    (p,) = found(product(plain, stages=stages))["a"]
    assert p.steps[0].wait == left and set(p.depths.values()) == {stages}


@pytest.mark.parametrize("stages", [0, 1])
def test_no_stages(stages: int) -> None:
    assert found(product(plain, stages=stages)) == {}


def test_rows_that_no_copy_can_take() -> None:
    # 33 elements of 16 bits: rows begin at odd multiples of two bytes
    assert set(found(product(plain, n=33))) == {"a"}
    assert set(found(product(plain, n=33, dtype="float32"))) == {"a", "b"}


def read_before(A: Any, B: Any, a: Any, b: Any, c: Any, ko: Any) -> None:
    T.copy(B[ko * 16 : ko * 16 + 16, :], b)
    T.gemm(a, b, c)  # what the iteration before left
    T.copy(A[0:32, ko * 16 : ko * 16 + 16], a)


def filled_twice(A: Any, B: Any, a: Any, b: Any, c: Any, ko: Any) -> None:
    plain(A, B, a, b, c, ko)
    T.clear(a)


def changed_source(A: Any, B: Any, a: Any, b: Any, c: Any, ko: Any) -> None:
    plain(A, B, a, b, c, ko)
    for i, j in T.Parallel(16, 16):
        A[32 + i, j] = A[32 + i, j] + 1


def part_of_tile(A: Any, B: Any, a: Any, b: Any, c: Any, ko: Any) -> None:
    T.copy(A[0:16, ko * 16 : ko * 16 + 16], a[0:16, :])
    T.copy(B[ko * 16 : ko * 16 + 16, :], b)
    T.gemm(a, b, c)


@pytest.mark.parametrize("body", [read_before, filled_twice, changed_source, part_of_tile])
def test_copies_that_stay(body: Callable[..., None]) -> None:
    assert set(found(product(body))) == {"b"}


def test_a_tile_that_is_read_after_the_loop_stays() -> None:
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 16), "float16")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((64, 16), "float16")
            for ko in T.Pipelined(4, num_stages=2):
                T.copy(A[0:64, ko * 16 : ko * 16 + 16], a)
            T.copy(a, C)

    assert found(main) == {}


def test_a_place_that_is_worked_out_in_the_loop_stays() -> None:
    @T.prim_func
    def main(
        A: T.Tensor((64, 64), "float16"), I: T.Tensor((4,), "int32"), C: T.Tensor((4, 16, 64), "float16")
    ):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((16, 64), "float16")
            b = T.alloc_shared((16, 64), "float16")
            at = T.alloc_var("int32")
            for ko in T.Pipelined(4, num_stages=2):
                at = I[ko]
                T.copy(A[at * 16, 0], a)
                T.copy(A[I[ko] * 16, 0], b)  # a table that nobody writes may be read ahead
                for i, j in T.Parallel(16, 64):
                    C[ko, i, j] = a[i, j] + b[i, j]

    assert set(found(main)) == {"b"}


@pytest.mark.parametrize(
    ("steps", "depth"),
    [
        ((Step(0, 0, ahead=True), Step(1, 2)), 2),  # the slot that is filled is still read
        ((Step(0, 1, ahead=True), Step(1, 2)), 3),  # nothing happens at the first step
    ],
)
def test_pipelines_check_themselves(steps: tuple[Step, ...], depth: int) -> None:
    with pytest.raises(InternalError):
        Pipeline(steps, {Buffer("a", (16,), F16, Space.SHARED): depth})


def shared(name: str) -> Buffer:
    return Buffer(name, (16,), F16, Space.SHARED)


def written(b: Buffer) -> Stmt:
    return Store(b, (const(0),), const(0, F16))


def read(b: Buffer) -> Stmt:
    return Store(Buffer("x", (1,), F16, Space.LOCAL), (const(0),), Load(b, (const(0),)))


def barriers(body: tuple[Stmt, ...]) -> int:
    return sum(isinstance(s, Sync) for s in statements(body))


def test_a_pipelined_loop_orders_its_rings_and_nothing_else() -> None:
    ring, other, k = shared("ring"), shared("other"), Var("k", INT32, 1)

    def loop(*body: Stmt) -> PipelinedFor:
        return PipelinedFor(k, const(0), 4, (Sync(), *body), rings=frozenset((ring,)))

    assert barriers(synchronised((written(ring), loop(written(ring), read(ring))), Pending())) == 1
    assert barriers(synchronised((loop(written(other), read(other)),), Pending())) == 2
    assert barriers(synchronised((loop(read(ring)), written(ring)), Pending())) == 2
    assert barriers(synchronised((loop(written(ring)), read(other)), Pending())) == 1
