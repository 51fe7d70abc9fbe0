"""Tile plan to LLVM IR text."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from ..backend import LaunchSpec, Source
from ..hardware import TargetInfo
from ..inference.plan import TilePlan
from ..signature import extents, launch_spec
from ..span import Span
from .machine import machine

if TYPE_CHECKING:
    from ..lowering.blocks import Lowered


class CpuCodegen:
    """Emits LLVM IR for one processor. The text depends on the plan and the processor only."""

    def __init__(self, info: TargetInfo) -> None:
        self.info = info
        self.machine = machine(info.target.arch)

    def emit(self, plan: TilePlan) -> Source:
        from .. import _tvm as tvm
        from ..lowering.pipeline import lower_plan
        from .text import finished

        with tvm.lock:
            target = tvm.target("llvm", mtriple=self.machine.triple, mcpu=self.machine.cpu, opt_level=0)
            module = lower_plan(plan, target)
            ir = tvm.llvm_text(module.module, target)
        first = module.lowered.interface.count
        private = {e.name: first for e in module.lowered.entries}
        return Source(finished(ir, self.machine, private), "llvm", ".ll", self._launch(module.lowered))

    def ir(self, plan: TilePlan) -> str:
        """The lowered TVM functions as TVMScript."""
        from .. import _tvm as tvm
        from ..lowering.pipeline import lower_plan

        with tvm.lock:
            target = tvm.target("llvm", mtriple=self.machine.triple, mcpu=self.machine.cpu, opt_level=0)
            return lower_plan(plan, target).module.script()

    def _launch(self, lowered: Lowered) -> LaunchSpec:
        """What the launcher needs beside the signature.

        ``scratch``: bytes of each scratch block, by entry; ``workspaces``: shape and bytes of an element of each;
        ``failures`` and ``prints``: what the numbers that a kernel reports mean; ``features`` of the processor.
        """
        interface = lowered.interface
        extra = {
            "scratch": tuple(e.scratch for e in lowered.entries),
            "workspaces": tuple((extents(b.shape), b.dtype.bytes) for b in interface.workspaces),
            "failures": tuple((message, _place(span)) for message, span in lowered.failures),
            "prints": lowered.prints,
            "features": tuple(sorted(self.machine.features)),
        }
        return launch_spec(interface.program, [e.name for e in lowered.entries], extra)


def _place(span: Span | None) -> dict[str, object] | None:
    """A span as plain data, so that a launch specification can be written to a file."""
    return None if span is None else asdict(span)
