"""The graph as text, one line per node and edge, the same on every run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..expr import Buffer, Var, element_text, shape_text
from ..expr import text as expr_text
from ..program import (
    Atomic,
    AtomicTile,
    Bind,
    Copy,
    Fill,
    For,
    Gemm,
    If,
    Launch,
    Parallel,
    Quantify,
    Reduce,
    Region,
    Scan,
    Stmt,
    Store,
    Transpose,
    While,
)
from .nodes import Edge, Graph, Loop, Node


def text(graph: Graph) -> str:
    """Regions and nodes, indented as in the program, then the edges."""
    lines = [f"graph {graph.program.name}" + (" (open)" if graph.program.is_open else "")]
    lines += _region(graph, "", 1)
    lines.append("edges")
    lines += [f"  {edge_text(e)}" for e in graph.edges]
    return "\n".join(lines) + "\n"


def _region(graph: Graph, name: str, depth: int) -> Iterator[str]:
    """Lines of one region: its nodes and the regions inside it, in program order."""
    pad = "  " * depth
    done: set[str] = set()
    for node in graph.nodes:
        inner = child_towards(graph, node.loop, name)
        if inner is None:
            continue
        if inner == "":
            yield f"{pad}{node.name}: {op_text(node)}"
        elif inner not in done:
            done.add(inner)
            yield f"{pad}{loop_text(graph.loop(inner))}"
            yield from _region(graph, inner, depth + 1)


def child_towards(graph: Graph, region: str, ancestor: str) -> str | None:
    """The region directly inside ``ancestor`` that holds ``region``: "" if they are one, None if it is elsewhere."""
    if region == ancestor:
        return ""
    while region:
        parent = graph.loop(region).parent
        if parent == ancestor:
            return region
        region = parent
    return None


def edge_text(e: Edge) -> str:
    """``copy0 -> gemm0  raw As (128, 32) float16, carried``."""
    carried = ", carried" if e.carried else ""
    return f"{e.source} -> {e.target}  {e.kind} {value_text(e.buffer)}{carried}"


def value_text(b: Buffer | Var) -> str:
    """A buffer with its shape and type, or a scalar with its type."""
    return f"{b.name} {shape_text(b.shape)} {b.dtype}" if isinstance(b, Buffer) else f"{b.name} {b.dtype}"


def loop_text(loop: Loop) -> str:
    """The head of a region."""
    s = loop.stmt
    match s:
        case Launch():
            return f"{loop.name}: grid {shape_text(s.grid)}, {s.thread_count} threads"
        case For():
            var = s.var.name if s.var is not None else "_"
            stages = f", {s.num_stages} stages" if s.num_stages else ""
            step = f" step {s.step}" if s.step != 1 else ""
            return f"{loop.name}: {s.kind} {var} from {expr_text(s.start)}, {expr_text(s.extent)} times{step}{stages}"
        case While():
            return f"{loop.name}: while {expr_text(s.condition)}"
        case If():
            return (
                f"{loop.name}: {'else of' if loop.name.startswith('else') else 'if'} {expr_text(s.condition)}"
            )


def region_text(r: Region) -> str:
    """``A[by * 128, k * 32 : +32]``: points by their index, ranges by start and extent; a whole buffer by its name."""
    if r.whole:
        return r.buffer.name
    parts = [
        expr_text(s) if p else f"{expr_text(s)} : +{expr_text(e)}"
        for s, e, p in zip(r.start, r.extent, r.point, strict=True)
    ]
    return f"{r.buffer.name}[{', '.join(parts)}]"


def op_text(node: Node) -> str:
    """One line that says what a node does."""
    s = node.stmt
    if node.kind == "elements" and isinstance(s, Parallel):
        return "; ".join(stmt_text(x) for x in s.body)
    return stmt_text(s)


def stmt_text(s: Stmt) -> str:
    """One line for a statement, in words close to the surface syntax."""
    match s:
        case Copy() | Transpose():
            sign = "^T" if isinstance(s, Transpose) else ""
            return f"{region_text(s.dst)} = {region_text(s.src)}{sign}"
        case Fill():
            return f"{region_text(s.dst)} = {expr_text(s.value)}"
        case Gemm():
            a, b = region_text(s.a) + "^T" * s.transpose_a, region_text(s.b) + "^T" * s.transpose_b
            return f"{region_text(s.c)} {'=' if s.clear else '+='} {a} @ {b}"
        case Reduce():
            sign = "=" if s.clear else f"{s.kind}="
            return f"{region_text(s.dst)} {sign} {s.kind}({region_text(s.src)}, axis {s.axis})"
        case Scan():
            order = ", reverse" if s.reverse else ""
            return f"{region_text(s.dst)} = scan_{s.kind}({region_text(s.src)}, axis {s.axis}{order})"
        case AtomicTile():
            return f"{region_text(s.dst)} {s.op}= {region_text(s.value)} atomically"
        case Quantify():
            return f"{s.result.name} = {s.kind}({region_text(s.src)})"
        case Parallel():
            return f"{_loops(s)}: {_short(s.body)}"
        case _:
            return _element_text(s)


def _loops(s: Parallel) -> str:
    vars = ", ".join(v.name for v in s.vars)
    return f"parallel {vars} in {shape_text(s.extents)}"


def _short(body: Sequence[Stmt], limit: int = 3) -> str:
    lines = [stmt_text(s) for s in body]
    return "; ".join(lines[:limit] + [f"... {len(lines) - limit} more"] * (len(lines) > limit))


def _element_text(s: Stmt) -> str:
    match s:
        case Store():
            return f"{element_text(s.buffer, s.indices)} = {expr_text(s.value)}"
        case Bind():
            return f"{s.var.name} = {expr_text(s.value)}"
        case Atomic():
            value = "" if s.value is None else f" {expr_text(s.value)}"
            result = f"{s.result.name} = " if s.result is not None else ""
            return f"{result}{element_text(s.buffer, s.indices)} {s.op}={value} atomically"
        case If():
            other = f" else {{{_short(s.other)}}}" if s.other else ""
            return f"if {expr_text(s.condition)} {{{_short(s.then)}}}{other}"
        case For():
            return f"for {s.var.name if s.var else '_'} in {expr_text(s.extent)} {{{_short(s.body)}}}"
        case While():
            return f"while {expr_text(s.condition)}"
        case _:
            return type(s).__name__.lower()
