"""Random small kernels, as source text: what the cpu target computes is what the interpreter does, to the last bit.

All numbers are small whole ones, so that sums are exact in every order. ``TILE_FUZZ_EXAMPLES`` says how many programs
are tried, and a failure prints the program.
"""

from __future__ import annotations

import itertools
import linecache
import os
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

import tile_core as tile
import tile_core.language as T

EXAMPLES = int(os.environ.get("TILE_FUZZ_EXAMPLES", "40"))
NUMBER = itertools.count()
Item = TypeVar("Item")


@dataclass(frozen=True)
class Named:
    """A tile: the letters of its dimensions, and the name of the storage behind it."""

    name: str
    shape: str
    storage: str


@dataclass
class Writer:
    """Writes one kernel. ``draw`` takes from a strategy of hypothesis."""

    draw: Any
    m: int = 0
    n: int = 0
    type: str = "float32"
    tiles: list[Named] = field(default_factory=list)
    cells: list[str] = field(default_factory=lambda: ["v"])
    count: int = 0

    def one(self, items: Sequence[Item]) -> Item:
        return self.draw(st.sampled_from(list(items)))

    def number(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def size(self, letter: str) -> int:
        """The extent of a dimension: ``p`` is another one as large as ``m``."""
        return self.n if letter == "n" else self.m

    def sizes(self, t: Named) -> str:
        return ", ".join(str(self.size(e)) for e in t.shape)

    def fresh(self, name: str) -> str:
        self.count += 1
        return f"{name}{self.count}"

    # Expressions.

    def leaf(self, place: dict[str, str], written: str) -> str:
        """A number, an index, a cell, or an element of a tile that is not written in this loop (or at its own place)."""
        kind = self.number(0, 5)
        fitting = [t for t in self.tiles if all(e in place for e in t.shape)]
        if kind <= 2 and fitting:
            t = self.one(fitting)
            index = ", ".join(self.index(place[e], self.size(e), t.storage != written) for e in t.shape)
            if t.storage != written or t.name == written:
                return f"{t.name}[{index}]"
        if kind == 3:
            return self.one(list(place.values()))
        if kind == 4:
            return self.one(self.cells)
        return str(self.number(-3, 3))

    def index(self, variable: str, extent: int, free: bool) -> str:
        shift = self.number(0, 3) if free else 0
        return [
            variable,
            f"({variable} + {shift}) % {extent}",
            f"{extent - 1} - {variable}",
            str(extent // 2),
        ][self.number(0, 3) if free else 0]

    def expression(self, place: dict[str, str], written: str, depth: int = 2) -> str:
        if depth == 0:
            return self.leaf(place, written)
        a, b = (self.expression(place, written, depth - 1) for _ in range(2))
        match self.number(0, 8):
            case 0:
                return f"({a} + {b})"
            case 1:
                return f"({a} - {b})"
            case 2:
                return f"({a} * {b})"
            case 3:
                return f"T.{self.one(['max', 'min'])}({a}, {b})"
            case 4:
                return f"T.if_then_else({self.condition(place, written)}, {a}, {b})"
            case 5:
                return f"({a} if {self.condition(place, written)} else {b})"
            case 6:
                op = self.one(["//", "%", ">>", "&", "|", "^"])
                return f"(T.int32({a}) {op} {self.number(1, 5)})"
            case 7:
                return f"T.abs({self.cast(a)})"
            case _:
                return self.leaf(place, written)

    def cast(self, text: str, type: str = "") -> str:
        return f"T.cast({text}, '{type or self.type}')"

    def condition(self, place: dict[str, str], written: str) -> str:
        a, b = self.leaf(place, written), self.leaf(place, written)
        test = f"T.int32({a}) {self.one(['<', '<=', '==', '!=', '>'])} {b}"
        extra = self.number(0, 4)
        if extra == 0:
            return f"not ({test})"
        if extra == 1:
            return f"({test} {self.one(['and', 'or'])} {self.leaf(place, written)} > 0)"
        return f"({test})"

    def small(self, text: str) -> str:
        return f"T.clamp({self.cast(text)}, -8, 8)"

    # Statements: lists of lines.

    def block(self, depth: int, count: int = 3) -> list[str]:
        return [line for _ in range(self.number(1, count)) for line in self.statement(depth)]

    def statement(self, depth: int) -> list[str]:
        simple = [self.elementwise, self.elementwise, self.reduction, self.scan, self.moved, self.cell]
        simple += [self.atomic, self.product, self.private, self.view]
        nested = [self.loop, self.branch, self.rounds, self.pipeline] if depth else []
        return self.one([*simple, *nested])(depth)

    def elementwise(self, _: int) -> list[str]:
        t = self.one(self.tiles)
        names = ["i", "j"][: len(t.shape)]
        place = dict(zip(t.shape, names, strict=True))
        head = f"for {', '.join(names)} in T.Parallel({self.sizes(t)}):"
        target = f"{t.name}[{', '.join(names)}]"
        lines = [f"    {target} = {self.small(self.expression(place, t.name))}"]
        if self.number(0, 3) == 0:
            lines = [f"    if {self.condition(place, t.name)}:", f"    {lines[0]}"]
            if self.number(0, 1):
                lines += ["    else:", f"        {target} += {self.number(-1, 1)}"]
        if self.number(0, 4) == 0:
            lines.insert(0, f"    w = {self.leaf(place, t.name)}")
            lines.append(f"    {target} = {self.small(f'{target} + w')}")
        return [head, *lines]

    def private(self, _: int) -> list[str]:
        t = self.one([t for t in self.tiles if len(t.shape) == 2])
        place = dict(zip(t.shape, "ij", strict=True))
        cell = self.fresh("p")
        return [
            f"for i, j in T.Parallel({self.sizes(t)}):",
            f"    {cell} = T.alloc_var('int32', {self.number(-2, 2)})",
            f"    for k in {self.one(['range', 'T.serial', 'T.unroll'])}({self.number(0, 4)}):",
            f"        {cell} += T.clamp(T.int32({self.expression(place, t.name, 1)}) + k, -8, 8)",
            f"    {t.name}[i, j] = {self.small(cell)}",
        ]

    def reduction(self, _: int) -> list[str]:
        source = self.one([t for t in self.tiles if t.shape == "mn"])
        dim = self.number(0, 1)
        target = "c" if dim == 0 else "r"
        kind = self.one(["sum", "max", "min", "absmax", "abssum"])
        clear = self.one(["", ", clear=False"])
        bound = self.one(["", "-"])
        axis = dim - 2 if bound else dim
        return [f"T.reduce_{kind}({source.name}, {target}, dim={axis}{clear})", *self.bounded(target)]

    def bounded(self, name: str) -> list[str]:
        t = next(t for t in self.tiles if t.name == name)
        names = ", ".join(["i", "j"][: len(t.shape)])
        return [
            f"for {names} in T.Parallel({self.sizes(t)}):",
            f"    {name}[{names}] = T.clamp({name}[{names}], -8, 8)",
        ]

    def scan(self, _: int) -> list[str]:
        t = self.one([t for t in self.tiles if len(t.shape) == 2])
        others = [o for o in self.tiles if o.shape == t.shape and o.storage != t.storage]
        target = self.one(others) if others and self.number(0, 1) else t
        into = f", {target.name}" if target != t else ""
        kind, reverse = self.one(["cumsum", "cummax"]), self.one(["", ", reverse=True"])
        return [f"T.{kind}({t.name}{into}, dim={self.number(0, 1)}{reverse})", *self.bounded(target.name)]

    def moved(self, _: int) -> list[str]:
        whole = [t for t in self.tiles if t.shape == "mn"]
        a, b = self.one(whole), self.one(whole)
        rows, columns = self.number(1, self.m), self.number(1, self.n)
        at = [self.number(0, e - size) for e, size in ((self.m, rows), (self.n, columns)) for _ in range(2)]
        part = f"[{at[0]}:{at[0] + rows}, {at[2]}:{at[2] + columns}]"
        other = f"[{at[1]}:{at[1] + rows}, {at[3]}:{at[3] + columns}]"
        kind = self.number(0, 5)
        if kind == 0:
            return [f"T.fill({a.name}{part}, {self.number(-3, 3)})"]
        if kind == 1:
            return [f"{a.name}{part} = {self.number(-3, 3)}"]
        if kind == 2 and self.m == self.n and a.storage != b.storage:
            return [f"T.transpose({a.name}, {b.name})"]
        if a.storage == b.storage:
            return [f"T.clear({a.name})"]
        if kind == 3:
            return [f"T.copy({a.name}{part}, {b.name}{other})"]
        if kind == 4:
            return [
                f"T.copy(A[by * {self.m} + {self.number(0, 3)}, bx * {self.n} - {self.number(0, 3)}], {b.name})"
            ]
        return [f"T.copy({a.name}, {b.name})"]

    def cell(self, _: int) -> list[str]:
        t = self.one(self.tiles)
        index = ", ".join(str(self.number(-self.size(e), self.size(e) - 1)) for e in t.shape)
        value = self.one([f"T.int32({t.name}[{index}])", "bx", "by + 1", str(self.number(-3, 3))])
        return self.one([[f"v = v + {value}"], [f"v += {value}"], [f"v = {value}"], [f"v = v % 7 - {value}"]])

    def atomic(self, _: int) -> list[str]:
        op = self.one(["add", "max", "min"])
        if op == "add":
            t = self.one([t for t in self.tiles if len(t.shape) == 2])
            return [
                f"for i, j in T.Parallel({self.sizes(t)}):",
                f"    T.atomic_add(G[(i + j) % 4], T.int32({t.name}[i, j]))",
            ]
        return [f"T.atomic_{op}(G[{dict(max=4, min=5)[op]}], v)"]

    def product(self, _: int) -> list[str]:
        whole = [t for t in self.tiles if t.shape == "mn"]
        a, b = self.one(whole), self.one(whole)
        clear = self.one(["", ", clear_accum=True"])
        if self.m == self.n and self.number(0, 1):
            flags = "".join(f", transpose_{x}=True" for x in "AB" if self.number(0, 1))
            return [f"T.gemm({a.name}, {b.name}, q{flags}{clear})", *self.bounded("q")]
        return [f"T.gemm({a.name}, {b.name}, q, transpose_B=True{clear})", *self.bounded("q")]

    def view(self, _: int) -> list[str]:
        """The shared tile under another shape."""
        place = {"n": "i", "m": "j"}
        name = self.fresh("w")
        if self.m == self.n:
            return self.elementwise(0)
        every, self.tiles = self.tiles, [t for t in self.tiles if t.storage != "s"]
        sum = f"{name}[i, j] + {self.leaf(place, 's')}"
        self.tiles = every
        return [
            f"{name} = T.{self.one(['reshape', 'view'])}(s, ({self.n}, {self.m}))",
            f"for i, j in T.Parallel({self.n}, {self.m}):",
            f"    {name}[i, j] = {self.small(sum)}",
        ]

    def loop(self, depth: int) -> list[str]:
        name = self.fresh("k")
        bounds = self.one([f"{self.number(0, 3)}", "1, 4", "3, -1, -2", "v % 3", "by, by + 2"])
        kind = "range" if "," in bounds and "-" in bounds else self.one(["range", "T.serial"])
        body = self.within(name, depth)
        if self.number(0, 2) == 0:
            body += [
                f"if {name} {self.one(['>', '=='])} {self.number(0, 2)}:",
                f"    {self.one(['break', 'continue'])}",
            ]
            body += self.block(0, 1)
        return [f"for {name} in {kind}({bounds}):", *indented(body)]

    def within(self, name: str, depth: int) -> list[str]:
        self.cells.append(name)
        body = self.block(depth - 1, 2)
        self.cells.remove(name)
        return body

    def branch(self, depth: int) -> list[str]:
        test = self.one(
            ["bx == 0", "by % 2 == 1", "v > 0", "v % 2 == 0", "T.any_of(s)", "T.all_of(s[0:1, :])"]
        )
        lines = [f"if {test}:", *indented(self.block(depth - 1, 2))]
        if self.number(0, 1):
            lines += [f"elif v < {self.number(-3, 3)}:", *indented(self.block(depth - 1, 1))]
        if self.number(0, 1):
            lines += ["else:", *indented(self.block(depth - 1, 2))]
        return lines

    def rounds(self, depth: int) -> list[str]:
        name = self.fresh("n")
        body = self.block(depth - 1, 2)
        return [
            f"{name} = T.alloc_var('int32', 0)",
            f"while {name} < {self.number(0, 3)}:",
            *indented([f"{name} += 1", *body]),
        ]

    def pipeline(self, _: int) -> list[str]:
        target = self.one([t for t in self.tiles if t.shape == "mn" and t.storage != "s"])
        return [
            f"for {self.fresh('k')} in T.Pipelined({self.number(0, 3)}, num_stages={self.number(0, 3)}):",
            f"    T.copy(A[by * {self.m}, k{self.count} * {self.n}], s)",
            f"    for i, j in T.Parallel({self.m}, {self.n}):",
            f"        {target.name}[i, j] = {self.small(f'{target.name}[i, j] + s[i, j]')}",
        ]


def indented(lines: Sequence[str]) -> list[str]:
    return [f"    {line}" for line in lines]


@st.composite
def programs(draw: Any) -> tuple[str, dict[str, Any]]:
    """(source, facts): a kernel over A, B, C of one shape, and G of six int32."""
    w = Writer(draw)
    w.m, w.n = w.one([1, 4, 5, 8, 16]), w.one([1, 3, 4, 8, 12, 16])
    rows, columns = w.number(1, 3), w.number(1, 3)
    M = max(1, rows * w.m - w.number(0, w.m - 1))
    N = max(1, columns * w.n - w.number(0, w.n - 1))
    w.type = w.one(["float32", "int32", "float16", "int8", "bfloat16", "float64", "int64"])
    whole, line = (w.m, w.n), "T.alloc_fragment"
    places = ["T.alloc_shared", line]
    w.tiles = [Named(name, "mn", name) for name in ("s", "t", "u")]
    w.tiles += [Named("r", "m", "r"), Named("c", "n", "c"), Named("q", "mp", "q")]
    lines = [f"s = T.alloc_shared({whole}, '{w.type}')"]
    lines += [f"{t.name} = {w.one(places)}(({w.sizes(t)},), '{w.type}')" for t in w.tiles[1:]]
    lines += [f"T.clear({t.name})" for t in w.tiles]
    lines += ["v = T.alloc_var('int32', 1)"]
    lines += [f"T.copy(A[by * {w.m}, bx * {w.n}], s)", f"T.copy(B[by * {w.m}, bx * {w.n}], t)"]
    lines += w.block(2, 5)
    last = w.one(["s", "t", "u"])
    if w.number(0, 1):
        use = "r[i] * 3 + c[j] + q[i, 0] + v % 5"
        lines += [f"for i, j in T.Parallel{whole}:", f"    {last}[i, j] += {w.small(use)}"]
    lines += [f"T.copy({last}, C[by * {w.m}, bx * {w.n}])"]
    threads = w.one([32, 64, 96, 128])
    dims = w.number(0, 1)
    shape = "(m, n)" if dims else f"({M}, {N})"
    grid = "T.ceildiv(n, {1}), T.ceildiv(m, {0})" if dims else "{2}, {3}"
    grid = grid.format(w.m, w.n, -(-N // w.n), -(-M // w.m))
    parameters = ", ".join(f"{x}: T.Tensor({shape}, '{w.type}')" for x in "ABC")
    head = [
        "@T.prim_func",
        f"def kernel({parameters}, G: T.Tensor((6,), 'int32')):",
        f"    with T.Kernel({grid}, threads={threads}) as (bx, by):",
    ]
    return "\n".join([*head, *indented(indented(lines))]) + "\n", {"shape": (M, N), "type": w.type}


def defined(source: str) -> Any:
    """The kernel that a source text defines."""
    file = f"<program {next(NUMBER)}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    names = {"T": T, "m": T.dynamic("m"), "n": T.dynamic("n")}
    exec(compile(source, file, "exec"), names)
    return names["kernel"]


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    print_blob=True,
    derandomize=EXAMPLES <= 40,
    suppress_health_check=list(HealthCheck),
)
@given(programs())
def test_random_programs(program: tuple[str, dict[str, Any]]) -> None:
    source, facts = program
    note(textwrap.indent(source, "    "))
    rng = np.random.default_rng(len(source))
    array = tile.dtypes.dtype(facts["type"]).as_numpy()
    a, b = rng.integers(-4, 5, (2, *facts["shape"])).astype(np.float32).astype(array)
    results = []
    for target in ("interpreter", "cpu"):
        kernel = tile.compile(defined(source), target=target)
        c, g = np.full(facts["shape"], 7, np.float32).astype(array), np.zeros(6, np.int32)
        kernel(a.copy(), b.copy(), c, g)
        results.append((c.astype(np.float64), g))
    (c0, g0), (c1, g1) = results
    np.testing.assert_array_equal(c1, c0)
    np.testing.assert_array_equal(g1, g0)


if __name__ == "__main__":
    pytest.main([__file__, "-q"])
