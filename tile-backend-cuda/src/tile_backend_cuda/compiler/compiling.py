"""The compiler role: CUDA C++ source to a cubin, with its figures and findings, checked against the target's limits."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tile_core.backend import Artifact, Source
from tile_core.errors import InternalError, TileError, Unsupported
from tile_core.hardware import TargetInfo

from . import disassembler, nvcc, nvrtc, report, toolkit
from .nvrtc import Compiled
from .options import Options

REGISTERS = 65536  # of a multiprocessor, all architectures: CUDA C++ Programming Guide, Compute Capabilities
NO_CACHE_SINCE = (13, 0)


class CudaCompiler:
    """Compiles for the architecture of ``info``. Options are those of ``options.Options``, by target or by call."""

    def __init__(self, info: TargetInfo) -> None:
        self.info = info
        self.arch = info.target.arch

    def options(self, given: Mapping[str, Any]) -> Options:
        return Options.of({**dict(self.info.target.options), **given})

    def fingerprint(self) -> str:
        """The compiler and its version; loads nothing where a file or its metadata tell it."""
        options = self.options({})
        if options.compiler != "nvrtc":
            return f"nvcc {nvcc.version(nvcc.path(options.compiler))}"
        try:
            library = toolkit.library(self.arch, options.nvrtc)
        except TileError:
            return "no NVRTC"  # the compilation says what to do about it
        version = library.version or nvrtc.loaded(library).version
        return f"nvrtc {toolkit.dotted(version)}"

    def compile(self, source: Source, options: Mapping[str, Any]) -> Artifact:
        """A cubin; its ``log`` is the compiler's, ``resources`` have the figures of ``report.Report.resources``.

        Raises:
            BackendError: the compiler is not there, does not work, or does not know the architecture.
            Unsupported: the kernel needs more than the target has.
            InternalError: it rejects the source; with ``strict``, also where there are findings.
        """
        if source.language != "cuda":
            raise InternalError(f"the CUDA compiler compiles cuda, this is {source.language}")
        chosen = self.options(options)
        if chosen.pdl and not self.options({}).pdl:
            raise Unsupported(
                "pdl decides about the code, and that is made before",
                help=f"compile for the target cuda:{self.arch},pdl=1",
            )
        made = self._compiled(source.text, chosen)
        if not made.cubin:
            raise _rejected(source, made.log)
        said = report.read(made.log)
        resources = self._within_limits(source, said)
        if chosen.strict and said.findings:
            texts = "\n".join(f.message for f in said.findings)
            raise InternalError(
                f"{self.arch} code has findings:\n{texts}", help="compile without strict=True"
            )
        return Artifact("cubin", made.cubin, made.log, resources, said.findings)

    def disassemble(self, source: Source, artifact: Artifact) -> str:
        """SASS of a cubin. Raises ``Unsupported`` where no disassembler is installed."""
        return disassembler.disassemble(artifact.data)

    def _compiled(self, text: str, options: Options) -> Compiled:
        flags = [f"-arch={self.arch}", "-std=c++17", "-Xptxas", "-v"]
        flags += [
            f for f, on in (("-use_fast_math", options.fast_math), ("-lineinfo", options.line_info)) if on
        ]
        if options.compiler != "nvrtc":
            return nvcc.compile(nvcc.path(options.compiler), text, flags)
        library = toolkit.library(self.arch, options.nvrtc)
        compiler = nvrtc.loaded(library)
        if int("".join(filter(str.isdigit, self.arch))) not in compiler.architectures():
            raise toolkit.none_for(self.arch, [toolkit.Library(library.path, compiler.version)])
        if compiler.version >= NO_CACHE_SINCE:
            flags.append("-no-cache")  # the driver's cache gives a cubin without its log
        return compiler.compile(text, "kernel.cu", flags)

    def _within_limits(self, source: Source, said: report.Report) -> dict[str, int]:
        """The figures, dynamic shared memory included. Raises ``Unsupported`` if the target has less."""
        space = self.info.space("shared")
        most = space.capacity if space else 0
        resources = said.resources
        for name, _, threads in source.launch.entries:
            figures = said.entries.get(name, {})
            shared = figures.get("shared", 0) + int(source.launch.extra.get("shared", {}).get(name, 0))
            if shared > most:
                raise _too_much(name, f"{shared} bytes of shared memory in each block", f"{most}", self.arch)
            registers = figures.get("registers", 0) * math.prod(threads)
            if registers > REGISTERS:
                raise _too_much(name, f"{registers} registers in each block", f"{REGISTERS}", self.arch)
            for what in ("shared", f"{name}.shared"):
                if what in resources:
                    resources[what] = max(resources[what], shared)
        return resources


def _too_much(name: str, needed: str, there: str, arch: str) -> Unsupported:
    return Unsupported(
        f"{name} needs {needed}, {arch} has {there}", help="use smaller tiles, or fewer stages of a pipeline"
    )


def _rejected(source: Source, log: str) -> InternalError:
    """The error for source that does not compile, which is written to a folder."""
    folder = Path(tempfile.mkdtemp(prefix="tile-rejected-"))
    (folder / f"kernel{source.suffix}").write_text(source.text, encoding="utf8")
    (folder / "log.txt").write_text(log, encoding="utf8")
    return InternalError(
        f"the compiler rejects the generated code:\n{log.strip()}",
        why="this is a fault of tile, not of the kernel",
        help=f"please report it with the folder {folder}",
    )
