"""What this target refuses of a plan, with the place in the user's kernel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tile_core.backend import Pass
from tile_core.dtypes import DType
from tile_core.errors import Unsupported
from tile_core.expr.walk import walk
from tile_core.hardware import TargetInfo
from tile_core.inference.plan import TilePlan
from tile_core.program import Assert, Atomic, AtomicTile, Print, Stmt
from tile_core.program.visit import buffers, expressions, statements
from tile_core.span import Span

from .codegen.dialect import TYPES
from .compiler.options import Options

DOUBLE = "MSL has no double; use float32, or run the kernel on `cpu`"
FENCES = ("3.2", "4.0")  # MSL 6.15.3: atomic_thread_fence is there since 3.2


class MetalLowering:
    """Refuses what MSL has no word for; plans are lowered to threads by the codegen."""

    def __init__(self, info: TargetInfo) -> None:
        self.info = info

    def legalize(self, plan: TilePlan) -> TilePlan:
        for name, dtype, span in _named(plan):
            self._type(name, dtype, span)
        for s in statements(plan.program.body):
            self._statement(s)
        return plan

    def passes(self) -> Sequence[Pass]:
        return ()

    def _type(self, name: str, dtype: DType, span: Span | None) -> None:
        if dtype.kind == "handle" or (dtype.name in TYPES and dtype.name in self.info.dtypes):
            return
        works = ", ".join(t for t in TYPES if t in self.info.dtypes)
        help = DOUBLE if dtype.name == "float64" else f"types that work: {works}"
        raise Unsupported(f"{name} is {dtype}: no code for that type on {self.info.target}", span, help=help)

    def _statement(self, s: Stmt) -> None:
        for root in expressions(s):
            for x in walk(root):
                self._type("a value", x.dtype, x.span or s.span)
        match s:
            case Print():
                raise Unsupported(
                    f"a kernel for {self.info.target} cannot print",
                    s.span,
                    help="set TILE_INTERPRET=1 to look inside",
                )
            case Assert():
                raise Unsupported(
                    f"a kernel for {self.info.target} cannot stop",
                    s.span,
                    why="MSL has no trap",
                    help="leave the assertion out, or set TILE_INTERPRET=1 to check it",
                )
            case Atomic() | AtomicTile():
                self._order(s)
            case _:
                pass

    def _order(self, s: Atomic | AtomicTile) -> None:
        language = Options.of_target(self.info).language
        if s.order != "relaxed" and language not in FENCES:
            raise Unsupported(
                f"an atomic with the order {s.order}",
                s.span,
                why=f"MSL {language} has relaxed atomics only, and no fence",
                help=f"use relaxed, or compile for {self.info.target},language=3.2 (macOS 15)",
            )


def _named(plan: TilePlan) -> Iterator[tuple[str, DType, Span | None]]:
    for p in plan.program.params:
        yield p.name, p.value.dtype, p.span
    for b in buffers(plan.program.body):
        yield b.name, b.dtype, b.span
