"""Calls that the native launcher checks itself: it launches exactly what the runtime accepts, and leaves the rest to Python."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from fake_driver import Fake
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tile_backend_cuda.launcher import expressions
from tile_core.backend import Artifact, LaunchParam, LaunchSpec
from tile_core.errors import ArgumentError, BackendError
from tile_core.runtime.arguments import is_tensor, view
from tile_core.runtime.binding import bind, evaluate

CUBIN = Artifact("cubin", b"\x7fELF")
DIMS = tuple(LaunchParam(n, "dim", "int32") for n in ("M", "N"))


def loaded(fake: Fake, *params: LaunchParam, dims=DIMS, entry="nothing", grid=("M",), **extra) -> Any:
    spec = LaunchSpec((*params, *dims), ((entry, grid, (128,)),), extra=extra)
    kernel = fake.launcher("native").load(CUBIN, spec)
    assert kernel.call is not None
    return kernel, spec


def accepted(spec: LaunchSpec, arguments: tuple[Any, ...]) -> bool:
    """Whether the runtime takes these arguments."""
    try:
        bind(spec, arguments, [view(a) if is_tensor(a) else None for a in arguments])
    except (ArgumentError, ValueError, TypeError):
        return False
    return True


def tensor(name: str, shape: Any = ("M", "N"), dtype: str = "float32", **more: Any) -> LaunchParam:
    return LaunchParam(name, "tensor", dtype, shape, **more)


def test_a_call_is_launched(fake: Fake) -> None:
    params = (tensor("A", ("N",)), tensor("B", ("N",)), tensor("C", ("N",)))
    dims = (LaunchParam("N", "dim", "int32"),)
    kernel, _ = loaded(fake, *params, dims=dims, entry="add", grid=("(N + 127) // 128", 1))
    a, b, c = torch.randn(300), torch.randn(300), torch.zeros(300)
    assert kernel.call((a, b, c), None)
    assert torch.equal(c, a + b)
    assert tuple(fake.seen.grid) == (3, 1, 1)
    assert kernel.call((a, b, c), 77)
    assert fake.seen.stream == 77
    kernel.call((torch.nn.Parameter(a), b.requires_grad_(), c), None)
    assert torch.equal(c, a + b)


class Subclass(torch.Tensor):
    pass


class Wrapper(torch.Tensor):
    """Answers for its operations itself: what it holds is elsewhere."""

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        raise NotImplementedError


def test_types_of_tensors(fake: Fake) -> None:
    kernel, spec = loaded(fake, tensor("A"))
    base = torch.zeros(4, 4)
    assert kernel.call((base.as_subclass(Subclass),), None)
    wrapper = torch.Tensor._make_subclass(Wrapper, base)
    others = (
        np.zeros((4, 4), np.float32),
        wrapper,
        base.to_sparse(),
        base.to("meta"),
        None,
        3,
        "text",
        [base],
    )
    assert not any(kernel.call((other,), None) for other in others)
    assert accepted(spec, (others[0],))  # Python takes numpy's, and launches


def test_negative_views_are_left_to_python(fake: Fake) -> None:
    kernel, _ = loaded(fake, tensor("A", strides=("", "")))
    z = torch.randn(8, 8, dtype=torch.complex64)
    lazy, plain = z.conj().imag, z.imag
    assert lazy.is_neg()
    assert not kernel.call((lazy,), None)
    assert kernel.call((plain,), None)
    one = torch.randn(1, 1, dtype=torch.complex64).conj().imag
    contiguous, contiguous_spec = loaded(fake, tensor("A"))
    assert one.is_neg() and one.is_contiguous()
    assert not contiguous.call((one,), None)
    assert not accepted(contiguous_spec, (one,))


SQUARE = torch.arange(64.0).reshape(8, 8)
TENSORS: dict[str, Callable[[], Any]] = {
    "square": lambda: SQUARE,
    "transposed": lambda: SQUARE.T,
    "rows": lambda: SQUARE[:4],
    "columns": lambda: SQUARE[:, :4],
    "every second row": lambda: SQUARE[::2],
    "one row": lambda: SQUARE[:1],
    "one column": lambda: SQUARE[:, :1],
    "offset by one": lambda: torch.zeros(65)[1:].reshape(8, 8),
    "no rows": lambda: SQUARE[:0],
    "no rows, not contiguous": lambda: SQUARE.T[:0, ::2],
    "expanded": lambda: torch.zeros(8, 1).expand(8, 8),
    "vector": lambda: torch.zeros(8),
    "scalar": lambda: torch.zeros(()),
    "cube": lambda: torch.zeros(8, 8, 8),
    "half": lambda: SQUARE.half(),
    "bfloat16": lambda: SQUARE.bfloat16(),
    "double": lambda: SQUARE.double(),
    "integers": lambda: SQUARE.int(),
    "bytes": lambda: SQUARE.byte(),
    "booleans": lambda: SQUARE > 3,
    "complex": lambda: torch.zeros(8, 8, dtype=torch.complex64),
    "large": lambda: torch.zeros(16, 16),
    "not a tensor": lambda: 5,
    "none": lambda: None,
}
PARAMS = {
    "symbolic": tensor("A"),
    "fixed": tensor("A", (8, 8)),
    "square": tensor("A", ("M", "M")),
    "expression": tensor("A", ("M", "M + 0")),
    "half as high": tensor("A", ("M", "2 * M")),
    "aligned": tensor("A", alignment=16),
    "strided": tensor("A", strides=("", "")),
    "dense rows": tensor("A", strides=("", 1)),
    "strides": tensor("A", strides=("N", 1)),
    "half": tensor("A", dtype="float16"),
    "bfloat16": tensor("A", dtype="bfloat16"),
    "tfloat32": tensor("A", dtype="tfloat32"),
    "integers": tensor("A", dtype="int32"),
    "booleans": tensor("A", dtype="bool"),
    "written": tensor("A", written=True),
    "pointer": LaunchParam("A", "pointer", "handle"),
}


@pytest.mark.parametrize("param", PARAMS)
def test_takes_what_the_runtime_takes(fake: Fake, param: str) -> None:
    kernel, spec = loaded(fake, PARAMS[param], dims=(), grid=(1,))
    for name, make in TENSORS.items():
        if param == "pointer" and name == "not a tensor":
            continue  # no tensor says which stream: Python asks
        argument = (make(),)
        assert kernel.call(argument, None) == accepted(spec, argument), name


def test_tensors_that_disagree(fake: Fake) -> None:
    kernel, spec = loaded(fake, tensor("A"), tensor("B", ("N", "M")), tensor("C", ("M",)))
    good = (torch.zeros(4, 6), torch.zeros(6, 4), torch.zeros(4))
    shapes = [torch.zeros(4, 6), torch.zeros(6, 4), torch.zeros(4), torch.zeros(6)]
    assert kernel.call(good, None)
    taken = [a for a in itertools.product(shapes, repeat=3) if kernel.call(a, None)]
    wanted = [a for a in itertools.product(shapes, repeat=3) if accepted(spec, a)]
    assert list(map(str, taken)) == list(map(str, wanted))
    assert not kernel.call(good[:2], None)
    assert not kernel.call((*good, good[0]), None)


NUMBERS = (0, 1, -1, 127, 128, -129, 2**31, 2**63 - 1, 2**63, -(2**63), 2**64, 1.0, 1e300, True, "1", None)


@pytest.mark.parametrize(
    "dtype", ["int8", "uint8", "int32", "uint32", "int64", "uint64", "float32", "float64", "bool"]
)
def test_numbers(fake: Fake, dtype: str) -> None:
    kernel, spec = loaded(fake, tensor("A"), LaunchParam("s", "scalar", dtype))
    for number in NUMBERS:
        argument = (SQUARE, number)
        if not (dtype == "uint64" and number == 2**63):  # beyond what the native launcher reads, not wrong
            assert kernel.call(argument, None) == accepted(spec, argument), number
    assert not kernel.call((SQUARE, np.int64(1)), None)  # Python unpacks it


def test_narrow_floats_go_through_python(fake: Fake) -> None:
    kernel, _ = loaded(fake, tensor("A"), LaunchParam("s", "scalar", "float16"))
    assert not kernel.call((SQUARE, 1.0), None)


def test_grids_that_cannot_be(fake: Fake) -> None:
    kernel, _ = loaded(fake, tensor("A"), grid=(1, "M * 70000"))
    assert not kernel.call((SQUARE,), None)
    kernel, _ = loaded(fake, tensor("A"), grid=("1 // (M - 8)",))
    assert not kernel.call((SQUARE,), None)
    kernel, _ = loaded(fake, tensor("A"), grid=("M - 20",))
    assert kernel.call((SQUARE,), None)  # no blocks: nothing is launched
    assert fake.seen.launches == 0


def test_driver_failures_are_raised(fake: Fake) -> None:
    kernel, _ = loaded(fake, tensor("A"))
    fake.fail("cuLaunchKernelEx", 700)
    with pytest.raises(BackendError, match="accessed memory it may not"):
        kernel.call((SQUARE,), None)


def test_misuse(fake: Fake) -> None:
    kernel, _ = loaded(fake, tensor("A"))
    for arguments in ((), ((SQUARE,),), ([SQUARE], None), ((SQUARE,), "stream")):
        with pytest.raises(TypeError):
            kernel.call(*arguments)
    with pytest.raises(ValueError, match="3 values"):
        kernel.plan.launch((1,), ((1,),), 0)


def test_shapes_of_outputs(fake: Fake) -> None:
    params = (
        tensor("A", ("M", "N")),
        tensor("B", ("2 * M", 3)),
        tensor("C", ("K",)),
        LaunchParam("s", "scalar", "int32"),
    )
    kernel, _ = loaded(fake, *params, dims=(*DIMS, LaunchParam("K", "dim", "int32")))
    a, c = torch.zeros(4, 6), torch.zeros(5)
    assert kernel.shapes((a, c, 1), (1,)) == ((8, 3),)
    assert kernel.shapes((a, 1), (1, 2)) is None  # no input says K
    assert kernel.shapes((a, 1, 1), (1,)) is None
    assert kernel.shapes((a, c), (1,)) is None
    assert kernel.shapes((a, c, 1, 1), (1,)) is None
    assert kernel.shapes((a, c, 1), (7,)) is None
    assert kernel.shapes((torch.zeros(8, 3), c, 1), (0,)) is None
    with pytest.raises(TypeError):
        kernel.shapes([a], (1,))


def test_kernels_beyond_the_limits_are_launched_through_ctypes(fake: Fake) -> None:
    many = [LaunchParam(f"s{n}", "scalar", "int32") for n in range(100)]
    kernel = fake.launcher("native").load(
        CUBIN, LaunchSpec((tensor("A", (1,)), *many), (("step", (1,), (32,)),))
    )
    assert kernel.call is None
    x = torch.zeros(1)
    kernel((x.data_ptr(), *range(100)), ((1,),), 5)
    assert x.item() == 1


def test_nothing_is_kept_alive(fake: Fake) -> None:
    import gc
    import weakref

    kernel, _ = loaded(fake, tensor("A"))
    x = torch.zeros(8, 8)
    seen = weakref.ref(x)
    for _ in range(3):
        assert kernel.call((x,), None)
        assert not kernel.call((x.half(),), None)
    del x
    gc.collect()
    assert seen() is None


NAMES = ("A", "M", "N")


def texts() -> st.SearchStrategy[str]:
    leaf = st.one_of(
        st.integers(-9, 99).map(lambda n: str(n) if n >= 0 else f"({n})"), st.sampled_from(NAMES[1:])
    )

    def more(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        pair = st.tuples(inner, st.sampled_from(["+", "-", "*", "//", "%"]), inner)
        compared = st.tuples(inner, st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), inner)
        called = st.tuples(st.sampled_from(["min", "max", "truncdiv", "truncmod"]), inner, inner)
        return st.one_of(
            pair.map(lambda p: f"({p[0]} {p[1]} {p[2]})"),
            compared.map(lambda p: f"({p[0]} {p[1]} {p[2]})"),
            called.map(lambda p: f"{p[0]}({p[1]}, {p[2]})"),
            st.tuples(inner, inner, inner).map(lambda p: f"({p[0]} if {p[1]} else {p[2]})"),
            inner.map(lambda p: f"(-{p})"),
            inner.map(lambda p: f"int32({p})"),
        )

    return st.recursive(leaf, more, max_leaves=8)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(texts(), st.integers(1, 40), st.integers(1, 40))
def test_expressions_mean_the_same_everywhere(fake: Fake, text: str, m: int, n: int) -> None:
    """In Python's evaluation, in the stack machine in Python, and in that of the native launcher."""
    dims = {"M": m, "N": n}
    code = expressions.code(text, {name: slot for slot, name in enumerate(NAMES)})
    try:
        wanted = evaluate(text, dims)
    except (ZeroDivisionError, ArithmeticError):
        with pytest.raises(ZeroDivisionError):
            expressions.value(code, (0, m, n))
        return
    try:
        assert expressions.value(code, (0, m, n)) == wanted
    except ZeroDivisionError:  # in the branch that is not taken
        return
    kernel, _ = loaded(fake, tensor("A"), grid=(f"1 + ({text}) % 1000",))
    assert kernel.call((torch.zeros(m, n),), 5)
    assert fake.seen.grid[0] == 1 + wanted % 1000


@pytest.mark.parametrize(
    "text",
    ["K", "M.real", "M ** 2", "__import__('os')", "M if N", "[M]", "1.5", "min(M)", "a < b < c", "'x'"],
)
def test_what_is_no_expression(text: str) -> None:
    with pytest.raises((ValueError, SyntaxError)):
        expressions.code(text, {"M": 0, "N": 1})
    with pytest.raises(ValueError, match="nests too deep"):
        expressions.code("(M, ".replace(", ", " + ") * 20 + "1" + ")" * 20, {"M": 0})
