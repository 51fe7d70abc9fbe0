"""Subgroup matrices as plain arrays: takes WGSL text that uses them, gives text that every adapter runs, with the same meaning.

Each invocation holds a whole matrix and does all of a product; what several store to the same place is the same. So the text's
addresses, orders, barriers and the way of the accumulators are tested where no adapter has the extension.
"""

from __future__ import annotations

import re

TYPE = r"subgroup_matrix_(?:left|right|result)<(\w+), (\d+), (\d+)>"
CELL = r"(\w+)\[(\w+)\]"
DECLARED = re.compile(rf"var (\w+): array<{TYPE}, (\d+)>;")
CLEAR = re.compile(rf"{CELL} = {TYPE}\(\);")
LOAD = re.compile(rf"{CELL} = subgroupMatrixLoad<{TYPE}, (row|col)_major>\(&(\w+), (.*), (\d+)u\);")
STORE = re.compile(rf"subgroupMatrixStore<row_major>\(&(\w+), (.*), {CELL}, (\d+)u\);")
PRODUCT = re.compile(rf"{CELL} = subgroupMatrixMultiplyAccumulate\({CELL}, {CELL}, \w+\[\w+\]\);")
HEADS = ("enable chromium", "diagnostic(off, chromium", "enable subgroups")
# Zero, which no compiler knows: loops up to a constant would all be written out, which takes lavapipe minutes.
NONE = "var<private> none: u32;"
FIRST = re.compile(r"(fn (\w+)\(@builtin.*\{)")


class Plain:
    """``shapes``: type, columns, rows and number of the matrices of each array."""

    def __init__(self, text: str) -> None:
        self.shapes = {m[1]: (m[2], int(m[3]), int(m[4]), int(m[5])) for m in DECLARED.finditer(text)}
        self.functions: dict[str, str] = {}

    def array(self, name: str) -> str:
        t, c, r, count = self.shapes[name]
        return f"array<{t}, {c * r * count}>"

    def given(self, name: str, letter: str) -> str:
        return f"{letter}: ptr<function, {self.array(name)}>, {letter}0: u32"

    def place(self, name: str, n: str) -> str:
        _, c, r, _ = self.shapes[name]
        return f"&{name}, {n}u * {c * r}u"

    def elements(self, name: str, step: str) -> str:
        """A loop over the elements of a matrix, by row and column."""
        _, c, r, _ = self.shapes[name]
        head = f"for (var r = 0u; r < {r}u + none; r++) {{ for (var c = 0u; c < {c}u + none; c++) "
        return f"{head}{{ {step.replace('@', f'm0 + r * {c}u + c')} }} }}"

    def call(self, name: str, parameters: str, body: str, arguments: str) -> str:
        self.functions[name] = f"fn {name}({parameters}) {{\n  {body}\n}}"
        return f"{name}({arguments});"

    def clear(self, m: re.Match[str]) -> str:
        body = self.elements(m[1], f"m[@] = {self.shapes[m[1]][0]}();")
        return self.call(f"clear_{m[1]}", self.given(m[1], "m"), body, self.place(m[1], m[2]))

    def load(self, m: re.Match[str]) -> str:
        order, memory, at, step = m.groups()[5:]
        where = f"r * {step}u + c" if order == "row" else f"c * {step}u + r"
        body = self.elements(m[1], f"m[@] = {memory}[at + {where}];")
        name = f"load_{m[1]}_{memory}_{order}_{step}"
        return self.call(name, f"{self.given(m[1], 'm')}, at: u32", body, f"{self.place(m[1], m[2])}, {at}")

    def store(self, m: re.Match[str]) -> str:
        memory, at, matrix, n, step = m.groups()
        body = self.elements(matrix, f"{memory}[at + r * {step}u + c] = m[@];")
        name = f"store_{matrix}_{memory}_{step}"
        return self.call(name, f"{self.given(matrix, 'm')}, at: u32", body, f"{self.place(matrix, n)}, {at}")

    def product(self, m: re.Match[str]) -> str:
        c, nc, a, na, b, nb = m.groups()
        t, columns, _, _ = self.shapes[c]
        depth = self.shapes[a][1]
        sum = f"{t}(a[a0 + r * {depth}u + k]) * {t}(b[b0 + k * {columns}u + c])"
        body = self.elements(c, f"for (var k = 0u; k < {depth}u + none; k++) {{ m[@] += {sum}; }}")
        given = ", ".join((self.given(c, "m"), self.given(a, "a"), self.given(b, "b")))
        places = ", ".join((self.place(c, nc), self.place(a, na), self.place(b, nb)))
        return self.call(f"product_{c}_{a}_{b}", given, body, places)


def plain(text: str) -> str:
    """The text without the extension."""
    made = Plain(text)
    for pattern, change in (
        (CLEAR, made.clear),
        (LOAD, made.load),
        (STORE, made.store),
        (PRODUCT, made.product),
    ):
        text = pattern.sub(change, text)
    text = DECLARED.sub(lambda m: f"var {m[1]}: {made.array(m[1])};", text)
    text = FIRST.sub(r"\1\n  none = \2_params.first_x >> 31u;", text)
    lines = [line for line in text.splitlines() if not line.startswith(HEADS)]
    return "\n".join((*lines, NONE, *made.functions.values())) + "\n"
