"""LLVM IR text to an object file, by llvmlite."""

from __future__ import annotations

import platform
import threading
from collections.abc import Mapping
from importlib import metadata
from typing import Any

from ..backend import Artifact, Source
from ..errors import InternalError
from ..hardware import TargetInfo
from .machine import machine

_LOCK = threading.Lock()  # LLVM's pass pipelines share global state


class CpuCompiler:
    """Optimises for the processor of ``info`` and writes an object file. ``options``: ``optimize`` (0 to 3, default 3)."""

    def __init__(self, info: TargetInfo) -> None:
        self.machine = machine(info.target.arch)

    def fingerprint(self) -> str:
        """The version of llvmlite, and the processor with its features."""
        m = self.machine
        version = metadata.version("llvmlite")
        return " ".join(("llvmlite", version, platform.system(), m.triple, m.cpu, m.feature_text, str(m.l2)))

    def compile(self, source: Source, options: Mapping[str, Any]) -> Artifact:
        level = int(options.get("optimize", 3))
        module, machine = self._optimized(source.text, level)
        resources = {"scratch_bytes": _scratch(source), "optimize": level}
        return Artifact("object", machine.emit_object(module), resources=resources)

    def disassemble(self, source: Source, artifact: Artifact) -> str:
        """The assembler text that the object was made of; LLVM writes one or the other, so it is compiled again."""
        module, machine = self._optimized(source.text, int(artifact.resources["optimize"]))
        return machine.emit_assembly(module)

    def _optimized(self, text: str, level: int) -> tuple[Any, Any]:
        import llvmlite.binding as llvm

        with _LOCK:
            llvm.initialize_all_targets()
            llvm.initialize_all_asmprinters()
            try:
                module = llvm.parse_assembly(text)
                module.verify()
            except RuntimeError as e:
                raise InternalError(f"LLVM rejects the generated code: {e}") from e
            target = llvm.Target.from_triple(self.machine.triple).create_target_machine(
                cpu=self.machine.cpu,
                features=self.machine.feature_text,
                opt=level,
                reloc="pic",
                codemodel="small",
            )
            tuning = llvm.create_pipeline_tuning_options(speed_level=level)
            tuning.loop_vectorization = tuning.slp_vectorization = level > 1
            builder = llvm.create_pass_builder(target, tuning)
            builder.getModulePassManager().run(module, builder)
            return module, target


def _scratch(source: Source) -> int:
    return max((sum(sizes) for sizes in source.launch.extra["scratch"]), default=0)
