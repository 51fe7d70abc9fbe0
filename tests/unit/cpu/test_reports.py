"""Prints and assertions of a running kernel."""

from __future__ import annotations

import numpy as np
import pytest
from cpu_programs import allocs, at, fragment, kernel, tensor, var, whole

from tile_core.errors import KernelError
from tile_core.expr import const, expr
from tile_core.program import Assert, Copy, For, Print, Store
from tile_core.span import Span


def test_assertion_raises_with_its_place():
    out = tensor("out", (100,), "int32")
    bx = var("bx")
    span = Span("kernel.py", 12, 5, 12, 20, "my_kernel", Span("caller.py", 3, 1, 3, 9))
    body = [Assert(bx < 50, "too far", span=span), Store(out, (bx,), bx)]
    run = kernel([out], body, vars=(bx,), grid=(100,))
    y = np.full(100, -1, np.int32)
    with pytest.raises(KernelError, match="assertion failed: too far") as e:
        run(y)
    assert e.value.span == span
    assert (y[50:] == -1).all()


def test_assertion_that_holds():
    out = tensor("out", (4,), "int32")
    bx = var("bx")
    y = np.zeros(4, np.int32)
    kernel([out], [Assert(bx >= 0), Store(out, (bx,), bx)], vars=(bx,), grid=(4,))(y)
    assert list(y) == [0, 1, 2, 3]


def test_assertion_leaves_a_loop():
    out = tensor("out", (8,), "int32")
    i = var("i")
    y = np.full(8, -1, np.int32)
    run = kernel([out], [For(i, expr(0), 8, (Assert(i < 3), Store(out, (i,), i)))])
    with pytest.raises(KernelError, match="assertion failed"):
        run(y)
    assert list(y) == [0, 1, 2, -1, -1, -1, -1, -1]


def test_print(capsys):
    a = tensor("A", (2, 3))
    f = fragment("F", (2, 3))
    h = const(1.5, "float16")
    body = [
        *allocs(f),
        Copy(whole(a), whole(f)),
        Print("values", (expr(3) + at(a, 0, 0).astype("int32"), h, whole(f), at(a, 0, 1) > 0)),
        Print("", (const(200, "uint8"),)),
    ]
    kernel([a], body)(np.arange(6, dtype=np.float32).reshape(2, 3))
    out = capsys.readouterr().out.splitlines()
    assert out == ["values 3 1.5 [[0. 1. 2.]", " [3. 4. 5.]] True", "200"]
