"""What a user holds: a kernel that can be called, and looked into."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from threading import RLock
from typing import Any

from .. import settings
from ..backend import Artifact, Backend, LaunchSpec, LoadedKernel, Source
from ..errors import ArgumentError, NoDevice, Unsupported
from ..program import TileProgram
from ..registry import registry
from ..select import TensorDevice, choose
from ..hardware import Target, TargetInfo
from .arguments import allocator, is_tensor, view
from .binding import bind, evaluate, solve
from .cache import Cache, Entry


@dataclass(frozen=True)
class Request:
    """A kernel to be compiled. ``identity`` stands for the program in the cache's key; "" keeps it out of the cache.

    ``build`` makes the tile program. ``outputs`` are numbers of parameters that the runtime allocates.
    """

    name: str
    build: Callable[[], TileProgram]
    identity: str
    outputs: tuple[int, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])


class Kernel:
    """A kernel for one target: call it with tensors. It is compiled when first needed.

    The target is that of ``target``; if none was given, of the first call.
    """

    def __init__(self, request: Request, target: str | Target | None = None) -> None:
        self.request = request
        self.wanted = target
        self._lock = RLock()
        self._loaded: dict[int, LoadedKernel] = {}
        self._entry: Entry | None = None
        self._chosen: Target | None = None
        self.times: Mapping[str, float] = {}

    # The warm path.

    def __call__(self, *arguments: Any, stream: int | None = None) -> Any:
        """Run the kernel; gives the outputs that the runtime allocates, alone or in a tuple.

        Raises:
            ArgumentError: an argument does not fit; the message names it.
            NoDevice: there is no device of the target.
        """
        where = _device(arguments)
        entry = self.entry(where)
        launch = entry.source.launch
        full, finish = self._with_outputs(launch, arguments)
        bound, _ = bind(launch, full)
        if not bound.empty:
            self._on(where)(bound.values, bound.grids, stream)
        outputs = tuple(finish(full[n]) for n in launch.outputs)
        return None if not outputs else outputs[0] if len(outputs) == 1 else outputs

    def _with_outputs(
        self, launch: LaunchSpec, arguments: Sequence[Any]
    ) -> tuple[list[Any], Callable[[Any], Any]]:
        params = [p for p in launch.params if p.kind != "dim"]
        inputs = [p for n, p in enumerate(params) if n not in launch.outputs]
        if len(arguments) != len(inputs):
            names = ", ".join(p.name for p in inputs)
            raise ArgumentError(
                f"{self.name} takes {len(inputs)} arguments ({names}), {len(arguments)} are given",
                help="outputs named by out_idx are allocated and returned" if launch.outputs else "",
            )
        if not launch.outputs:
            return list(arguments), _same
        tensors = [(p, view(a, p.name)) for p, a in zip(inputs, arguments, strict=True) if p.kind == "tensor"]
        dims = solve([(p, v.shape) for p, v in tensors])
        allocate, finish = allocator(next((a for a in arguments if is_tensor(a)), None))
        rest = iter(arguments)
        full: list[Any] = []
        for n, p in enumerate(params):
            if n not in launch.outputs:
                full.append(next(rest))
                continue
            try:
                full.append(allocate([evaluate(d, dims) for d in p.shape], p.dtype))
            except NameError as error:
                raise ArgumentError(
                    f"the shape of the output {p.name} follows from no input: {error}"
                ) from error
        return full, finish

    def _on(self, where: TensorDevice | None) -> LoadedKernel:
        """The kernel, loaded on the device of the arguments."""
        index = where.index if where is not None else 0
        found = self._loaded.get(index)
        if found is None:
            with self._lock:
                backend, entry = self.backend, self.entry(where)
                _reachable(backend, where)
                devices = backend.devices()
                if index >= len(devices):
                    findings = [c.run() for c in backend.checks()]
                    missing = "; ".join(f.message for f in findings if f.level == "error")
                    raise NoDevice(
                        f"there is no {backend.name} device {index} here{': ' + missing if missing else ''}",
                        help="`tile doctor` says more; compiling for it works without a device",
                    )
                launcher = backend.launcher(devices[index])
                found = self._loaded[index] = launcher.load(entry.artifact, entry.source.launch)
        return found

    # Compilation.

    def entry(self, where: TensorDevice | None = None) -> Entry:
        """The compiled kernel: from memory, from the cache on disk, or made now."""
        if self._entry is not None:
            return self._entry
        with self._lock:
            if self._entry is None:
                self._chosen = self._target(where)
                self._entry = self._find_or_make()
        return self._entry

    def _target(self, where: TensorDevice | None) -> Target:
        if self.wanted is None and settings.current().interpret:
            return Target.parse("interpreter")
        return choose(self.wanted, where)

    def _find_or_make(self) -> Entry:
        cache, key = Cache(), self.key
        found = cache.get(key) if key else None
        if found is not None:
            return found
        from .pipeline import compile_program

        made = compile_program(self.request_program, self.backend, self.info, self.request.options)
        self.times = made.times
        about = {"name": self.name, "target": str(self.target)}
        entry = Entry(made.artifact, made.source, about)
        if key:
            cache.put(key, entry)
        return entry

    @cached_property
    def request_program(self) -> TileProgram:
        """The tile program, with the outputs that the request names."""
        from dataclasses import replace

        program = self.request.build()
        return replace(program, outputs=self.request.outputs) if self.request.outputs else program

    @property
    def key(self) -> str:
        """The key in the disk cache: identity of the kernel, target, options, and versions of all that makes code."""
        if not self.request.identity:
            return ""
        parts = {
            "kernel": self.request.identity,
            "outputs": self.request.outputs,
            "options": sorted((k, repr(v)) for k, v in self.request.options.items()),
            "target": str(self.target),
            "code": [
                package_state("tile_core"),
                package_state(type(self.backend).__module__.partition(".")[0]),
            ],
            "toolkit": self.backend.compiler(self.info).fingerprint(),
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    # Looking inside.

    @property
    def name(self) -> str:
        return self.request.name

    @property
    def target(self) -> Target:
        """The target it is compiled for."""
        if self._chosen is None:
            self._chosen = self._target(None)
        return self._chosen

    @property
    def backend(self) -> Backend:
        return registry().get(self.target.backend)

    @property
    def info(self) -> TargetInfo:
        return self.backend.info(self.target)

    @property
    def program(self) -> TileProgram:
        """The tile program as it was written."""
        return self.request_program

    @cached_property
    def plan(self) -> Any:
        """What inference decided: grid, layouts, instructions, moves."""
        from .pipeline import make_plan

        return make_plan(self.request_program, self.info)

    @property
    def ir(self) -> str:
        """The lowered program from which the source is printed. Raises ``Unsupported`` if the backend has none."""
        from .pipeline import legalized

        codegen = self.backend.codegen(self.info)
        show = getattr(codegen, "ir", None)
        if show is None:
            raise Unsupported(f"{self.backend.name} prints its source from the plan: it has no other ir")
        return show(legalized(self.plan, self.backend))

    @property
    def graph(self) -> Any:
        """The fused tile-level dataflow graph."""
        return self.plan.graph

    @property
    def source(self) -> str:
        """The generated source."""
        return self.entry().source.text

    @property
    def source_file(self) -> Path:
        """A file that holds the generated source, beside the cached kernel."""
        entry = self.entry()
        name = f"{self.name}-{(self.key or hashlib.sha256(entry.source.text.encode()).hexdigest())[:12]}"
        folder = Cache().folder.parent / "sources"
        path = folder / f"{name}{entry.source.suffix}"
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            path.write_text(entry.source.text, encoding="utf8")
        except OSError:
            import tempfile

            path = Path(tempfile.gettempdir()) / path.name
            path.write_text(entry.source.text, encoding="utf8")
        return path

    @property
    def artifact(self) -> Artifact:
        """What the launcher loads."""
        return self.entry().artifact

    @property
    def resources(self) -> Mapping[str, int]:
        """Figures of the compiled kernel, such as bytes of scratch or registers."""
        return self.artifact.resources

    @property
    def launch(self) -> LaunchSpec:
        """How it is called."""
        return self.entry().source.launch

    def source_object(self) -> Source:
        return self.entry().source

    def disassemble(self) -> str:
        """Machine code as text. Raises ``Unsupported`` if the backend has no disassembler."""
        show = getattr(self.backend.compiler(self.info), "disassemble", None)
        if show is None:
            raise Unsupported(f"{self.backend.name} cannot disassemble")
        return show(self.artifact)

    def __repr__(self) -> str:
        where = self._chosen or self.wanted or "not yet compiled"
        return f"<kernel {self.name}: {where}>"


def _reachable(backend: Backend, where: TensorDevice | None) -> None:
    """Raise ``ArgumentError`` if the backend cannot reach tensors that live ``where``."""
    if where is None or where.torch in backend.torch_devices or where.dlpack in backend.dlpack_devices:
        return
    if backend.torch_devices or backend.dlpack_devices:
        own = ", ".join(dict.fromkeys(f"{name!r}" for name, _ in backend.torch_devices))
        raise ArgumentError(
            f"the tensors are on {where}, a kernel for {backend.name} cannot reach them",
            help=f"move them to device {own}, or choose another target",
        )


def _same(value: Any) -> Any:
    return value


def _device(arguments: Sequence[Any]) -> TensorDevice | None:
    for a in arguments:
        if is_tensor(a):
            return view(a).device
    return None


@lru_cache(maxsize=16)
def package_state(package: str) -> str:
    """Version of an installed package and a digest of its files' sizes and times: changes when its code does."""
    import importlib.util

    spec = importlib.util.find_spec(package)
    digest = hashlib.sha256()
    for root in (spec.submodule_search_locations or ()) if spec else ():
        for file in sorted(Path(root).rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                status = file.stat()
                digest.update(f"{file.relative_to(root)}:{status.st_size}:{status.st_mtime_ns}\n".encode())
    return f"{package}:{digest.hexdigest()}"
