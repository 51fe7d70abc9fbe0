"""A tile program as text, close to how a user would write it. Deterministic: used in golden tests and ``tile inspect``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ..expr import Buffer, Expr, element_text, index_text, shape_text
from ..expr import text as expr_text
from ..expr.affine import same
from .nodes import (
    Alloc,
    Assert,
    Assume,
    Atomic,
    AtomicTile,
    Bind,
    Break,
    Breakpoint,
    Continue,
    Copy,
    Fill,
    For,
    Gemm,
    If,
    Invoke,
    Launch,
    Parallel,
    Place,
    Print,
    Quantify,
    Reduce,
    Region,
    Scan,
    Stmt,
    Store,
    Sync,
    TileProgram,
    Transpose,
    While,
)


def text(program: TileProgram) -> str:
    """The whole program."""
    head = f"kernel {program.name}({', '.join(_param(p.name, p.value) for p in program.params)})"
    if program.outputs:
        head += f" -> {', '.join(program.params[n].name for n in program.outputs)}"
    return "\n".join([head + ":", *_indented(program.body)])


def _param(name: str, value: Any) -> str:
    if not isinstance(value, Buffer):
        return f"{name}: {value.dtype}"
    strides = f", strides={shape_text(value.strides)}" if value.strides is not None else ""
    return f"{name}: {value.dtype}{shape_text(value.shape)}{strides}"


def _indented(body: Iterable[Stmt]) -> Iterator[str]:
    empty = True
    for s in body:
        empty = False
        for line in lines(s):
            yield f"    {line}"
    if empty:
        yield "    pass"


def lines(s: Stmt) -> Iterator[str]:
    """A statement, its bodies indented below it."""
    match s:
        case Launch():
            yield _launch(s)
            yield from _indented(s.body)
        case For():
            yield _for(s)
            yield from _indented(s.body)
        case While():
            yield f"while {expr_text(s.condition)}:"
            yield from _indented(s.body)
        case Parallel():
            yield f"for {', '.join(v.name for v in s.vars)} in parallel({index_text(s.extents)}):"
            yield from _indented(s.body)
        case If():
            yield f"if {expr_text(s.condition)}:"
            yield from _indented(s.then)
            if s.other:
                yield "else:"
                yield from _indented(s.other)
        case _:
            yield line(s)


WORDS: dict[type[Stmt], str] = {
    Break: "break",
    Continue: "continue",
    Breakpoint: "breakpoint()",
}


def line(s: Stmt) -> str:
    """A statement without bodies."""
    match s:
        case Copy():
            return f"copy({region(s.src)}, {region(s.dst)})"
        case Fill():
            return f"fill({region(s.dst)}, {expr_text(s.value)})"
        case Transpose():
            return f"transpose({region(s.src)}, {region(s.dst)})"
        case Gemm():
            return _gemm(s)
        case Reduce():
            keep = "" if s.clear else ", clear=False"
            nan = ", propagate_nan=True" if s.propagate_nan else ""
            return f"reduce_{s.kind}({region(s.src)}, {region(s.dst)}, dim={s.axis}{keep}{nan})"
        case Scan():
            back = ", reverse=True" if s.reverse else ""
            return f"cum{s.kind}({region(s.src)}, {region(s.dst)}, dim={s.axis}{back})"
        case AtomicTile():
            return f"atomic_{s.op}({region(s.dst)}, {region(s.value)})"
        case Quantify():
            return f"{s.result.name} = {s.kind}_of({region(s.src)})"
        case Store():
            return f"{element_text(s.buffer, s.indices)} = {expr_text(s.value)}"
        case Bind():
            return f"{s.var.name}: {s.var.dtype} = {expr_text(s.value)}"
        case Atomic():
            return _atomic(s)
        case Alloc():
            return _alloc(s.buffer)
        case Assert():
            return f"assert {expr_text(s.condition)}, {s.message!r}"
        case Assume():
            return f"assume({expr_text(s.condition)})"
        case Print():
            shown = [region(v) if isinstance(v, Region) else expr_text(v) for v in s.values]
            return f"print({', '.join([repr(s.message), *shown])})"
        case Sync():
            return f"sync_threads({f'{expr_text(s.number)}, {s.threads}' if s.threads else ''})"
        case Invoke():
            result = "" if s.result is None else f"{s.result.name} = "
            return f"{result}{s.function}({', '.join(_argument(a) for a in s.arguments)})"
        case Break() | Continue() | Breakpoint():
            return WORDS[type(s)]
        case _:
            raise TypeError(type(s).__name__)


def _argument(a: Expr | Place) -> str:
    return f"&{element_text(a.buffer, a.indices)}" if isinstance(a, Place) else expr_text(a)


def region(r: Region) -> str:
    """A region as an index: the buffer's name alone if it is all of it."""
    if all(
        same(a, 0) and same(e, d) for a, e, d in zip(r.start, r.extent, r.buffer.shape, strict=True)
    ) and not any(r.point):
        return r.buffer.name
    parts: list[str] = []
    for a, e, p in zip(r.start, r.extent, r.point, strict=True):
        low = expr_text(a)
        parts.append(low if p else f"{low}:{expr_text(a + e)}" if _plain(a) else f"{low} +: {expr_text(e)}")
    return f"{r.buffer.name}[{', '.join(parts)}]"


def _plain(x: Expr) -> bool:
    return same(x, 0) or not expr_text(x).count(" ")


def _launch(s: Launch) -> str:
    threads = ", ".join(map(str, s.threads))
    numbers = f", thread numbers {', '.join(v.name for v in s.thread_vars)}" if s.thread_vars else ""
    swizzle = f", swizzle {s.swizzle[1]} {s.swizzle[0]}" if s.swizzle else ""
    vars = ", ".join(v.name for v in s.vars)
    return f"launch {vars} in ({index_text(s.grid)}), threads ({threads}){numbers}{swizzle}:"


def _for(s: For) -> str:
    start = expr_text(s.start)
    step = f" step {s.step}" if s.step != 1 else ""
    first = "" if same(s.start, 0) else f"{start} +: "
    stages = f", num_stages={s.num_stages}" if s.kind == "pipelined" else ""
    pinned = f", stage={list(s.stage)}, order={list(s.order)}" if s.stage else ""
    name = s.var.name if s.var is not None else "_"
    return f"for {name} in {s.kind}({first}{expr_text(s.extent)}{step}{stages}{pinned}):"


def _gemm(s: Gemm) -> str:
    a = region(s.a) + (".T" if s.transpose_a else "")
    b = region(s.b) + (".T" if s.transpose_b else "")
    policy = f", policy={s.policy}" if s.policy != "square" else ""
    return f"gemm({a}, {b}, {region(s.c)}{policy}{', clear' if s.clear else ''})"


def _atomic(s: Atomic) -> str:
    place = element_text(s.buffer, s.indices)
    value = "" if s.value is None else f", {expr_text(s.value)}"
    result = "" if s.result is None else f"{s.result.name} = "
    return f"{result}atomic_{s.op}({place}{value})"


def _alloc(b: Buffer) -> str:
    view = f" = view of {b.source.name}" if b.source is not None else ""
    return f"{b.name}: {b.space} {b.dtype}{shape_text(b.shape)}{view}"
