"""The compiler role: HIP C++ source to a code object, with its figures and findings, checked against the target's limits."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tile_core.backend import Artifact, Source
from tile_core.errors import BackendError, InternalError, TileError, Unsupported
from tile_core.hardware import TargetInfo

from . import metadata, toolkit
from .hiprtc import Hiprtc, Rejected

# with every compiler
COMMON = (
    *("-O3", "-std=c++17"),
    "-mcode-object-version=5",  # clang 20 and later would write version 6, which older runtimes do not load
    "-fno-strict-aliasing",  # elements are moved as words
    "-munsafe-fp-atomics",  # tensors are coarse-grained memory, where the hardware's floating additions are right
    "-Wno-inline-asm",  # M0 is named as clobbered, which clang warns of
    "-w",
)
# without anything of ROCm
ALONE = ("-x", "hip", "--cuda-device-only", "--no-gpu-bundle-output", "-nogpuinc", "-nogpulib")
OPTIONS = ("clang", "compiler", "strict")


class RocmCompiler:
    """Compiles for the architecture of ``info``.

    Options: ``compiler``, clang or hiprtc, where not clang if there is one; ``clang``, a path; ``strict``, findings are errors.
    """

    def __init__(self, info: TargetInfo) -> None:
        self.info = info
        self.arch = info.target.arch

    def fingerprint(self) -> str:
        """The compiler and its version."""
        try:
            return toolkit.chosen(self.arch).text
        except TileError:
            return "no compiler"  # the compilation says what to do about it

    def compile(self, source: Source, options: Mapping[str, Any]) -> Artifact:
        """A code object; ``resources`` has the figures of ``metadata.FIGURES``.

        Raises:
            BackendError: the compiler is not there or does not know the architecture.
            Unsupported: an option that there is not, or the kernel needs more than the target has.
            InternalError: it rejects the source; with ``strict``, also where there are findings.
        """
        if source.language != "hip":
            raise InternalError(f"the HIP compiler compiles hip, this is {source.language}")
        if unknown := sorted(set(options) - set(OPTIONS)):
            raise Unsupported(
                f"no option {', '.join(unknown)} of this compiler", help=f"there are {', '.join(OPTIONS)}"
            )
        names = (str(options.get(n, "")) for n in ("compiler", "clang"))
        data, log = self._compiled(source, toolkit.chosen(self.arch, *names))
        found = metadata.kernels(data)
        self._within_limits(found)
        said = metadata.findings(found)
        if options.get("strict") and said:
            texts = "\n".join(f.message for f in said)
            raise InternalError(
                f"{self.arch} code has findings:\n{texts}", help="compile without strict=True"
            )
        return Artifact("hsaco", data, log, metadata.resources(found), said)

    def disassemble(self, source: Source, artifact: Artifact) -> str:
        """The instructions of a code object. Raises ``Unsupported`` where no llvm-objdump is installed."""
        found = toolkit.clang(self.arch)
        program = found.tool("llvm-objdump")
        if program is None:
            raise Unsupported("there is no llvm-objdump here", help=f"apt-get install llvm-{found.major}")
        with tempfile.TemporaryDirectory(prefix="tile-isa-") as folder:
            file = Path(folder, "kernel.hsaco")
            file.write_bytes(artifact.data)
            command = [program, "-d", "--no-show-raw-insn", "--no-leading-addr", str(file)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise BackendError(f"{program} fails: {done.stderr.strip()}")
        return done.stdout.replace(str(file), "kernel.hsaco")

    def _compiled(self, source: Source, compiler: toolkit.Clang | Hiprtc) -> tuple[bytes, str]:
        target = f"--offload-arch={self.arch}"
        try:
            match compiler:
                case Hiprtc():
                    return compiler.compiled(source.text, (*COMMON, target))
                case _:
                    return compiler.compiled(source.text, source.suffix, (*ALONE, *COMMON, target))
        except Rejected as error:
            raise _rejected(source, str(error)) from error

    def _within_limits(self, found: Mapping[str, Mapping[str, int]]) -> None:
        space = self.info.space("shared")
        most = space.capacity if space else 0
        for name, figures in found.items():
            if figures["shared"] > most:
                raise Unsupported(
                    f"{name} needs {figures['shared']} bytes of LDS in each block, {self.arch} has {most}",
                    help="use smaller tiles, or fewer stages of a pipeline",
                )


def _rejected(source: Source, log: str) -> InternalError:
    """The error for source that does not compile, which is written to a folder; line numbers are those of the file there."""
    folder = Path(tempfile.mkdtemp(prefix="tile-rejected-"))
    (folder / f"kernel{source.suffix}").write_text(source.text, encoding="utf8")
    (folder / "log.txt").write_text(log, encoding="utf8")
    return InternalError(
        f"the compiler rejects the generated code:\n{log.strip()}",
        why="this is a fault of tile, not of the kernel",
        help=f"please report it with the folder {folder}",
    )
