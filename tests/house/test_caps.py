"""Sizes and names of modules and functions. Tables are exempt: a function or file that is nearly all literals."""

from __future__ import annotations

import ast

from tracked import ROOT, product

FILE, FUNCTION = 800, 80
NAMES = {"utils", "util", "helpers", "helper", "common", "misc"}
TABLE = 0.8


def lines(node: ast.AST) -> int:
    return node.end_lineno - node.lineno + 1


def is_table(tree: ast.AST, size: int) -> bool:
    """Whether most lines belong to assigned literals."""
    literals = (ast.Dict, ast.List, ast.Tuple, ast.Set, ast.Call)
    assigned = (
        n
        for n in ast.walk(tree)
        if isinstance(n, (ast.Assign, ast.AnnAssign)) and isinstance(n.value, literals)
    )
    return sum(lines(n) for n in assigned) > TABLE * size


def test_functions_are_short():
    long = [
        f"{file.relative_to(ROOT)}:{node.lineno} {node.name}: {lines(node)} lines"
        for file, tree in product()
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and lines(node) > FUNCTION
        and not is_table(node, lines(node))
    ]
    assert not long, "\n".join(long)


def test_files_are_short():
    long = []
    for file, tree in product():
        size = file.read_text("utf8").count("\n")
        if size > FILE and not is_table(tree, size):
            long.append(f"{file.relative_to(ROOT)}: {size} lines")
    assert not long, "\n".join(long)


def test_modules_have_names_that_say_something():
    assert not [str(file) for file, _ in product() if {file.stem, file.parent.name} & NAMES]


def test_every_module_says_what_it_is_for():
    silent = [
        str(file.relative_to(ROOT)) for file, tree in product() if tree.body and not ast.get_docstring(tree)
    ]
    assert not silent, "\n".join(silent)
