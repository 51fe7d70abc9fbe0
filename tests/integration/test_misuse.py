"""Programs of a user who is wrong, or unusual: each runs and is right, or raises an error of tile at the user's line.

Each program is source text that is run as a notebook runs its cells. Mistakes have their line marked with ``# here``.
"""

from __future__ import annotations

import itertools
import linecache
import textwrap
from typing import Any

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T

NUMBER = itertools.count()
HEAD = "import numpy as np\nimport tile_core as tile\nimport tile_core.language as T\n"
KERNEL = """
@T.prim_func
def kernel(X: T.Tensor((8, 8)), Y: T.Tensor((8, 8))):
    with T.Kernel(1, threads=32) as bx:
{body}
x, y = np.arange(64, dtype=np.float32).reshape(8, 8), np.zeros((8, 8), np.float32)
tile.compile(kernel)(x, y)
result = y.sum()
"""


def run(source: str, target: str) -> tuple[dict[str, Any], str, list[str]]:
    """(names that the program defined, its file, its lines)."""
    text = HEAD + textwrap.dedent(source)
    file = f"<cell {next(NUMBER)}>"
    lines = text.splitlines(keepends=True)
    linecache.cache[file] = (len(text), None, lines, file)
    names: dict[str, Any] = {"__name__": "notebook"}
    with tile.target(target):
        try:
            exec(compile(text, file, "exec"), names)
        except tile.TileError as error:
            names["error"] = error
    return names, file, lines


def body(text: str) -> str:
    return KERNEL.format(body=textwrap.indent(textwrap.dedent(text).strip("\n"), " " * 8))


@pytest.fixture(params=["cpu", "interpreter"])
def target(request: pytest.FixtureRequest) -> str:
    return request.param


# statement of a kernel over X (0..63) and Y (zeros), sum of Y afterwards
WORKS = {
    "membership": ("for i in T.Parallel(8):\n    if i in (1, 3):\n        Y[i, 0] = 1", 2),
    "no member": ("for i in T.Parallel(8):\n    if i not in [1, 3]:\n        Y[i, 0] = 1", 6),
    "member of a range": ("for i in T.Parallel(8):\n    if i in range(2, 5):\n        Y[i, 0] = 1", 3),
    "member of nothing": ("for i in T.Parallel(8):\n    if i in []:\n        Y[i, 0] = 1", 0),
    "index of numpy": ("Y[np.int64(1), 0] = np.float32(2)", 2),
    "default of a nested function": ("def f(i, j=2):\n    return X[i, j]\nY[0, 0] = f(1)", 10),
    "keywords named as ours": (
        "def f(*a, k=0, function=0, self=0):\n    return a[0] + k + function + self\n"
        "Y[0, 0] = f(1, k=2, function=3, self=4)",
        10,
    ),
    "loop beyond int32": ("for i in T.serial(2**32 + 5, 2**32 + 7):\n    Y[0, 0] = T.float32(i - 2**32)", 6),
    "a scalar of each iteration": (
        "for i, j in T.Parallel(8, 8):\n    p = T.alloc_var('float32', 0)\n"
        "    for k in range(3):\n        p += X[i, j] + k\n    Y[i, j] = p",
        6240,
    ),
    "an array of each iteration": (
        "for i, j in T.Parallel(8, 8):\n    p = T.alloc_local((2,), 'float32')\n    p[0] = X[i, j]\n"
        "    p[1] = p[0] * 2\n    Y[i, j] = p[1]",
        4032,
    ),
    "bools count": ("a = X[0, 1] > 0\nb = X[0, 0] > 0\nY[0, 0] = (a + a) * 100 + (b - a) * 10 + a * 3", 193),
    "view with strides": (
        "a = T.alloc_shared((8, 8), 'float32')\nb = T.view(a, (8, 8), strides=(1, 8))\nT.copy(X, a)\n"
        "Y[0, 0] = b[1, 0] + b[0, 1] * 10",
        81,
    ),
    "a value that doubles": ("a = X[0, 1]\nfor i in [0] * 18:\n    a = a + a\nY[0, 0] = a", 2**18),
    "a number that grows": (
        "a = bx + 1\nfor i in [0] * 18:\n    a = T.max(a, a + 1)\nY[0, 0] = T.float32(a)",
        19,
    ),
    "a long sum of a loop that unrolls": (
        "a = 0.0\nfor i in list(range(2000)):\n    a = a + X[i % 8, 0]\nY[0, 0] = a",
        56000,
    ),
    "loop of int64": (
        "n = T.alloc_var('int64', 2**32)\nfor i in T.serial(n, n + 3):\n    Y[0, 0] = T.float32(i - n)",
        2,
    ),
    "parallel loop of int64": (
        "n = T.alloc_var('int64', 5)\nfor i in T.Parallel(n):\n    Y[i, 0] = T.float32(i)",
        10,
    ),
}


@pytest.mark.parametrize("name", WORKS)
def test_unusual_statements(name: str, target: str) -> None:
    statements, expected = WORKS[name]
    names, _, _ = run(body(statements), target)
    assert "error" not in names, names["error"]
    assert names["result"] == expected


# statements of a kernel, part of the message
MISTAKES = {
    "operator": ("Y[0, 0] = X @ X  # here", "unsupported operand"),
    "division": ("Y[0, 0] = 1 // 0  # here", "ZeroDivisionError"),
    "numpy function": ("Y[0, 0] = np.exp(X[0, 0])  # here", "numpy does not work on values of a kernel"),
    "array": ("Y[0, 0] = np.array([1.0, 2.0])  # here", "a single value is needed"),
    "huge number": ("Y[0, 0] = 10**400  # here", "fits no type"),
    "number as a loop": ("for i in 5:  # here\n    pass", "not iterable"),
    "empty range": ("for i in range():  # here\n    pass", "start"),
    "too few names": ("for i, j in T.grid(2, 2, 2):  # here\n    pass", "3 indices, 2 names"),
    "too many names": ("for i, j in T.Parallel(2):  # here\n    pass", "1 index, 2 names"),
    "comprehension": ("a = [X[0, i] for i in T.serial(8)]  # here", "comprehension"),
    "recursion": ("def f(i):\n    return f(i)  # here\nf(1)", "calls itself without end"),
    "attribute of a number": ("a = 3\na.foo()  # here", "no attribute 'foo'"),
    "attribute before a value": ("a.foo()  # here\na = 3", "a has no value here"),
    "index of a region": ("a = X[0:2, :]\na[0, 0] = 1  # here", "a region is not indexed again"),
    "view beyond its tile": (
        "a = T.alloc_shared((8, 8), 'float32')\nb = T.view(a, (8, 8), strides=(100, 8))  # here",
        "reaches element 756",
    ),
    "conversion of two": ("Y[0, 0] = T.int32(1, 2)  # here", "converts one value"),
    "no layout": ("T.annotate_layout({X: 3})  # here", "not a tile_core.layout.Layout"),
    "long expression": ("Y[0, 0] = " + " + ".join(["X[0, 0]"] * 900), "nested too deeply"),
    "key": ("a = {}['x']  # here", "KeyError"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistaken_statements(name: str, target: str) -> None:
    statements, expected = MISTAKES[name]
    names, file, lines = run(body(statements), target)
    error = names["error"]
    assert isinstance(error, tile.KernelError)
    assert expected in str(error)
    assert error.span is not None
    assert error.span.file == file
    assert (
        "# here" in lines[error.span.line - 1] or name == "long expression"
    )  # that is shown by its function


def test_a_race_through_a_view() -> None:
    statements = """
    s = T.alloc_shared((8, 8), "float32")
    T.copy(X, s)
    w = T.view(s, (64,), "int32")
    for i in T.Parallel(63):
        w[i] = T.reinterpret(s[(i + 1) // 8, (i + 1) % 8], "int32")
    """
    names, _, _ = run(body(statements), "interpreter")
    assert "depend on each other through w" in str(names["error"])


LAUNCHES = {
    "T.Kernel(2**40)": "block numbers are int32",
    "T.Kernel(1, threads=1.5)": "positive numbers",
    "T.Kernel(1, threads=True)": "positive numbers",
    "T.Kernel(2, 2) as (a, b, c), T.Kernel(1)": "2 dimensions, 3 names",
}


@pytest.mark.parametrize("launch", LAUNCHES)
def test_mistaken_launches(launch: str, target: str) -> None:
    names, _, _ = run(body("pass").replace("T.Kernel(1, threads=32)", launch), target)
    assert LAUNCHES[launch] in str(names["error"])
    assert names["error"].span is not None


def test_threads_are_numbers_of_numpy(target: str) -> None:
    names, _, _ = run(body("T.copy(X, Y)").replace("threads=32", "threads=np.int64(32)"), target)
    assert names["result"] == 2016


@pytest.mark.parametrize("parameters", ["X: T.Tensor((4,)), *, Y: T.Tensor((4,))", "X: T.Tensor((4,)), *Y"])
def test_parameters_are_plain(parameters: str, target: str) -> None:
    source = (
        f"@T.prim_func\ndef kernel({parameters}):\n    with T.Kernel(1):\n        pass\ntile.compile(kernel)"
    )
    names, _, _ = run(source, target)
    assert "is passed by name, or is any number" in str(names["error"])
    assert names["error"].span is not None


def test_cells_whose_annotations_alone_differ(target: str) -> None:
    cell = """
    @T.prim_func
    def kernel(X: T.Tensor((4,), "{0}"), Y: T.Tensor((4,), "{0}")):
        with T.Kernel(1):
            T.copy(X, Y)

    x, y = np.ones(4, "{0}"), np.zeros(4, "{0}")
    tile.compile(kernel)(x, y)
    """
    for type in ("float32", "int16", "float64"):
        names, _, _ = run(cell.format(type), target)
        assert "error" not in names, names["error"]
        assert (names["y"] == 1).all()


@pytest.mark.parametrize("future", ["", "from __future__ import annotations"])
@pytest.mark.parametrize("made", ["tile.compile(kernel)", "factory()"])
def test_values_that_annotations_name_are_in_the_key(
    future: str, made: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    """A file that is edited between two runs: only a number that an annotation names is another."""
    monkeypatch.setenv("TILE_CACHE_DIR", str(tmp_path))
    cell = """
    N = {}
    @T.prim_func
    def kernel(X: T.Tensor((N,)), Y: T.Tensor((N,))):
        with T.Kernel(1):
            T.copy(X, Y)

    @tile.jit
    def factory():
        @T.prim_func
        def kernel(X: T.Tensor((N,)), Y: T.Tensor((N,))):
            with T.Kernel(1):
                T.copy(X, Y)
        return kernel

    x, y = np.ones(N, np.float32), np.zeros(N, np.float32)
    {}(x, y)
    """
    global HEAD
    before = HEAD
    try:
        HEAD = f"{future}\n{before}"
        for n in (4, 8):
            names, _, _ = run(cell.format(n, made), "cpu")
            assert "error" not in names, names["error"]
            assert names["y"].sum() == n
    finally:
        HEAD = before


def test_globals_are_those_of_the_moment(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("TILE_CACHE_DIR", str(tmp_path))
    names, _, _ = run(
        """
        n = 3
        @T.prim_func
        def kernel(X: T.Tensor((4,)), Y: T.Tensor((4,))):
            with T.Kernel(1):
                for i in T.Parallel(4):
                    Y[i] = X[i] + n
        kernel.program
        x, y = np.ones(4, np.float32), np.zeros(4, np.float32)
        n = 10
        tile.compile(kernel)(x, y)
        """,
        "cpu",
    )
    assert (names["y"] == 11).all()


@pytest.mark.parametrize(
    "words",
    [
        ("from tile_core.language import *", ""),
        ("import tile_core", "tile_core.language."),
        ("import tile_core.language as other", "other."),
    ],
)
def test_eager_kernels_by_any_name(words: tuple[str, str], target: str) -> None:
    line, T = words
    source = f"""
    {line}
    @tile.jit
    def twice(A):
        N = {T}const("N")
        A: {T}Tensor((N,), "float32")
        C = {T}empty((N,), "float32")
        with {T}Kernel({T}ceildiv(N, 32)) as bx:
            for i in {T}Parallel(32):
                if bx * 32 + i < N:
                    C[bx * 32 + i] = A[bx * 32 + i] * 2
        return C
    result = twice(np.ones(40, np.float32)).sum()
    """
    names, _, _ = run(source, target)
    assert "error" not in names, names["error"]
    assert names["result"] == 80


def test_a_factory_is_a_method(target: str) -> None:
    source = """
    class Layer:
        def __init__(self, scale):
            self.scale = scale

        @tile.jit(out_idx=-1)
        def build(self, n):
            @T.prim_func
            def kernel(X: T.Tensor((n,)), Y: T.Tensor((n,))):
                with T.Kernel(1):
                    for i in T.Parallel(n):
                        Y[i] = X[i] * self.scale
            return kernel

    layer, x = Layer(3), np.ones(4, np.float32)
    first = layer.build(4)(x)
    layer.scale = 5
    second = layer.build(4)(x)
    """
    names, _, _ = run(source, target)
    assert "error" not in names, names["error"]
    assert (names["first"] == 3).all()
    assert (names["second"] == 5).all()


@T.prim_func
def copied(X: T.Tensor((8, 8)), Y: T.Tensor((8, 8))):
    with T.Kernel(1):
        T.copy(X, Y)


def test_arguments_by_name(target: str) -> None:
    kernel = tile.compile(copied, target=target)
    x, y = np.ones((8, 8), np.float32), np.zeros((8, 8), np.float32)
    kernel(X=x, Y=y)
    assert (y == 1).all()
    for named, message in (
        ({"X": x, "Z": y}, "no argument 'Z'"),
        ({"X": x}, "argument Y of copied is missing"),
        ({"X": x, "Y": y, "y": y}, "no argument 'y'"),
    ):
        with pytest.raises(tile.ArgumentError, match=message):
            kernel(**named)
    with pytest.raises(tile.ArgumentError, match="given twice"):
        kernel(x, y, X=x)


def test_arrays_of_another_byte_order(target: str) -> None:
    y = np.zeros((8, 8), np.float32)
    with pytest.raises(tile.ArgumentError, match="byte order"):
        tile.compile(copied, target=target)(np.ones((8, 8), ">f4"), y)


def test_libraries_are_mixed_on_the_host(target: str) -> None:
    torch = pytest.importorskip("torch")
    y = np.zeros((8, 8), np.float32)
    tile.compile(copied, target=target)(torch.ones(8, 8), y)
    assert (y == 1).all()


def test_what_a_kernel_is_not_made_for(target: str) -> None:
    import copy
    import pickle

    kernel = tile.compile(copied, target=target)
    for value in (kernel, copied):
        with pytest.raises(tile.KernelError, match="cannot be pickled"):
            pickle.dumps(value)
        assert copy.deepcopy(value) is value
    with pytest.raises(tile.KernelError, match="out_idx 'Y'"):
        tile.compile(copied, out_idx=["Y"])

    @tile.jit
    def factory(M):
        return copied

    with pytest.raises(tile.ArgumentError, match="too many positional arguments"):
        factory(3, 4)


def test_tiles_larger_than_memory(target: str) -> None:
    names, _, _ = run(body("a = T.alloc_shared((2**45,), 'float32')\nT.clear(a)\nY[0, 0] = a[3]"), target)
    assert isinstance(names["error"], tile.TileError)


def untouched(size: int) -> Any:
    """Zeroed bytes of which only those that are used take memory."""
    import mmap

    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0x4000)
    return np.frombuffer(mmap.mmap(-1, size, flags=flags), np.uint8, size)


@pytest.mark.parametrize("type", ["int32", "int64"])
def test_more_elements_than_int32_counts(target: str, type: str) -> None:
    width = 2**31 - 8 if type == "int32" else 2**32
    n = T.dynamic("n", type)

    @T.prim_func
    def kernel(X: T.Tensor((5, n), "uint8")):
        with T.Kernel(5, threads=32) as bx:
            f = T.alloc_fragment((8,), "uint8")
            for i in T.Parallel(8):
                X[bx, n - 8 + i] += 1 + bx
            T.copy(X[bx, n - 8], f)
            T.copy(f, X[bx, 0])

    x = untouched(5 * width).reshape(5, width)
    x[:, -8:] = np.arange(8)
    tile.compile(kernel, target=target)(x)
    expected = np.arange(8) + 1 + np.arange(5)[:, None]
    assert (x[:, -8:] == expected).all()
    assert (x[:, :8] == expected).all()


def test_a_dimension_that_its_type_does_not_hold(target: str) -> None:
    n = T.dynamic("n")

    @T.prim_func
    def kernel(X: T.Tensor((n,), "uint8")):
        with T.Kernel(1):
            X[0] = 1

    with pytest.raises(tile.ArgumentError, match="does not fit int32"):
        tile.compile(kernel, target=target)(untouched(2**31))


def test_symbolic_strides(target: str) -> None:
    s = T.dynamic("s", "int64")

    @T.prim_func
    def kernel(X: T.StridedTensor((2, 8), (s, 1), "uint8")):
        with T.Kernel(2) as bx:
            for i in T.Parallel(8):
                X[bx, i] = bx * 10 + i

    x = np.lib.stride_tricks.as_strided(untouched(2**33 + 8), (2, 8), (2**33, 1))
    tile.compile(kernel, target=target)(x)
    assert (x == np.arange(8) + 10 * np.arange(2)[:, None]).all()
