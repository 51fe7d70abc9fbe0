"""Subgroup matrices as plain arrays: takes WGSL text that uses them, gives text that every adapter runs, with the same meaning.

Each invocation holds a whole matrix and does all of a product; what several store to the same place is the same. So the text's
addresses, orders, barriers and the way of the accumulators are tested where no adapter has the extension.
"""

from __future__ import annotations

import re

TYPE = r"subgroup_matrix_(?:left|right|result)<(\w+), (\d+), (\d+)>"
LOAD = re.compile(rf"subgroupMatrixLoad<{TYPE}, (row|col)_major>\(&(\w+), (.*), (\d+)u\);")
STORE = re.compile(r"subgroupMatrixStore<row_major>\(&(\w+), (.*), (\w+)\[(\w+)\], (\d+)u\);")
PRODUCT = re.compile(r"subgroupMatrixMultiplyAccumulate\((\w+)\[(\w+)\], (\w+)\[(\w+)\], (\w+)\[(\w+)\]\)")
DECLARED = re.compile(rf"var (\w+): array<{TYPE}, \d+>;")
HEADS = ("enable chromium", "diagnostic(off, chromium", "enable subgroups")

Shape = tuple[str, int, int]  # type, columns, rows


def plain(text: str) -> str:
    """The text without the extension."""
    shapes = {name: (t, int(c), int(r)) for name, t, c, r in DECLARED.findall(text)}
    functions: dict[str, str] = {}
    text = LOAD.sub(lambda m: _load(functions, *m.groups()), text)
    text = STORE.sub(lambda m: _store(functions, shapes, *m.groups()), text)
    text = PRODUCT.sub(lambda m: _product(functions, shapes, *m.groups()), text)
    text = re.sub(TYPE, lambda m: f"array<{m[1]}, {int(m[2]) * int(m[3])}>", text)
    lines = [line for line in text.splitlines() if not line.startswith(HEADS)]
    return "\n".join((*lines, *functions.values())) + "\n"


def _array(shape: Shape) -> str:
    return f"array<{shape[0]}, {shape[1] * shape[2]}>"


def _load(
    functions: dict[str, str], t: str, c: str, r: str, order: str, name: str, at: str, step: str
) -> str:
    call = f"load_{name}_{c}_{r}_{order}_{step}"
    where = f"r * {step}u + c" if order == "row" else f"c * {step}u + r"
    functions[call] = f"""fn {call}(at: u32) -> array<{t}, {int(c) * int(r)}> {{
  var out: array<{t}, {int(c) * int(r)}>;
  for (var r = 0u; r < {r}u; r++) {{ for (var c = 0u; c < {c}u; c++) {{ out[r * {c}u + c] = {name}[at + {where}]; }} }}
  return out;
}}"""
    return f"{call}({at});"


def _store(
    functions: dict[str, str], shapes: dict[str, Shape], name: str, at: str, matrix: str, n: str, step: str
) -> str:
    t, c, r = shapes[matrix]
    call = f"store_{name}_{step}"
    functions[call] = f"""fn {call}(at: u32, given: {_array((t, c, r))}) {{
  var m = given;
  for (var r = 0u; r < {r}u; r++) {{ for (var c = 0u; c < {c}u; c++) {{ {name}[at + r * {step}u + c] = m[r * {c}u + c]; }} }}
}}"""
    return f"{call}({at}, {matrix}[{n}]);"


def _product(functions: dict[str, str], shapes: dict[str, Shape], *names: str) -> str:
    a, b, c = (shapes[n] for n in names[::2])
    call = f"product_{a[0]}_{c[0]}_{a[2]}_{b[1]}_{a[1]}"
    functions[call] = f"""fn {call}(x: {_array(a)}, y: {_array(b)}, z: {_array(c)}) -> {_array(c)} {{
  var a = x; var b = y; var c = z;
  for (var m = 0u; m < {a[2]}u; m++) {{ for (var n = 0u; n < {b[1]}u; n++) {{ for (var k = 0u; k < {a[1]}u; k++) {{
    c[m * {b[1]}u + n] += {c[0]}(a[m * {a[1]}u + k]) * {c[0]}(b[k * {b[1]}u + n]);
  }} }} }}
  return c;
}}"""
    return f"{call}({', '.join(f'{n}[{i}]' for n, i in zip(names[::2], names[1::2], strict=True))})"
