"""Tile plan to LLVM IR text."""

from __future__ import annotations

from dataclasses import asdict

from ..backend import LaunchSpec, Source
from ..inference.plan import TilePlan
from ..span import Span
from ..hardware import TargetInfo
from .machine import machine


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
            text = tvm.llvm_text(module.module, target)
        first = len(module.lowered.interface.launch_params()) + len(module.lowered.interface.workspaces)
        private = {e.name: first for e in module.lowered.entries}
        return Source(finished(text, self.machine, private), "llvm", ".ll", self._launch(module.lowered))

    def _launch(self, lowered: object) -> LaunchSpec:
        from ..lowering.interface import extent_text

        interface = lowered.interface
        entries = tuple(
            (e.name, tuple(extent_text(g) for g in e.launch.grid), tuple(e.launch.threads)) for e in lowered.entries
        )
        extra = {
            "scratch": tuple(e.scratch for e in lowered.entries),
            "workspaces": tuple(
                (tuple(extent_text(d) for d in b.shape), b.dtype.bytes) for b in interface.workspaces
            ),
            "failures": tuple((message, _place(span)) for message, span in lowered.failures),
            "prints": lowered.prints,
            "features": tuple(sorted(self.machine.features)),
        }
        return LaunchSpec(interface.launch_params(), entries, interface.program.outputs, extra)


def _place(span: Span | None) -> dict[str, object] | None:
    """A span as plain data, so that a launch specification can be written to a file."""
    return None if span is None else asdict(span)
