"""Plans to WGSL: one module, with an entry point for each launch and the bindings that it uses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from tile_core.backend import Source
from tile_core.errors import Unsupported
from tile_core.expr import Buffer, Space, Var
from tile_core.hardware import TargetInfo
from tile_core.inference.plan import TilePlan
from tile_core.lowering.simt.lower import lower_for
from tile_core.program import Launch, TileProgram
from tile_core.program.text import text
from tile_core.program.verify import used_dimensions
from tile_core.signature import extents, launch_spec, workspaces

from ..targets import granted
from .addresses import Addresses
from .functions import needed
from .instructions import instructions
from .matrices import EXTENSION, FEATURE, PREFIX, TRUSTED
from .names import Names
from .printer import Printer
from .reuse import read_once
from .scalars import Scalars
from .storage import Form, Stored, in_memory, no_pointers
from .tiles import variables
from .unrolling import unrolled
from .uses import Uses

FIRST = "first"  # the numbers of the first block of a dispatch: a grid may be larger than one dispatch
HALF = "shader-f16"
# what a text enables, and the feature of the device that it stands for
FEATURES = {"f16": HALF, "subgroups": "subgroups", EXTENSION: FEATURE}


class WgslCodegen:
    """Emits WGSL. Pure and deterministic."""

    def __init__(self, info: TargetInfo) -> None:
        self.info = info

    def emit(self, plan: TilePlan) -> Source:
        """The source of all launches.

        Raises:
            Unsupported: a type, function, amount of memory or step that WGSL or the target does not have, with the span.
        """
        program = lower_for(plan, instructions(self.info)).program
        module = Module(self.info, program)
        for n, launch in enumerate(program.launches):
            module.add(launch, f"{program.name}_{n}")
        return module.source()

    def ir(self, plan: TilePlan) -> str:
        """The thread-level program that is printed."""
        return text(lower_for(plan, instructions(self.info)).program)


@dataclass
class Module:
    """The text of a module and what a launcher must know of it, while they grow.

    ``bindings``: for each entry point the parameters it uses and how, in the order of their numbers, from 1 on; number 0
    are the uniforms.
    """

    info: TargetInfo
    program: TileProgram
    parts: list[str] = field(default_factory=list[str])
    launches: dict[str, Launch] = field(default_factory=dict[str, Launch])
    bindings: dict[str, tuple[tuple[str, str], ...]] = field(default_factory=dict[str, Any])
    shuffles: bool = False
    workgroup_bytes: int = 0

    def __post_init__(self) -> None:
        self.scalars = Scalars(HALF in self.info.features)
        self.workspaces = {b: f"workspace{k}" for k, b in enumerate(workspaces(self.program))}
        self.tensors = {p.value: p.name for p in self.program.params if isinstance(p.value, Buffer)}

    def uniforms(self) -> Iterator[tuple[str, Var]]:
        """Name and variable of the numbers that a launch is given."""
        for p in self.program.params:
            if isinstance(p.value, Var):
                if p.value.dtype.kind == "handle":
                    raise Unsupported(
                        f"{p.name} is a pointer", p.span, why="WGSL has no pointers that come from outside",
                        help="pass tensors",
                    )  # fmt: skip
                yield p.name, p.value
        for v in used_dimensions(self.program):
            yield v.name, v

    def add(self, launch: Launch, name: str) -> None:
        """Print one launch as an entry point."""
        flat = replace(launch, body=unrolled(launch.body))
        body = read_once(flat.body, Addresses.of(flat), self.scalars)
        entry = Entry(self, replace(flat, body=body), name)
        self.parts.append("\n".join(entry.lines()))
        self.launches[name] = launch
        self.bindings[name] = tuple(entry.bindings)

    def source(self) -> Source:
        body = "\n\n".join(self.parts)
        fields = [f"  {FIRST}_{axis}: u32," for axis in "xyz"]
        fields += [f"  {name}: {self.uniform(v)}," for name, v in self.numbered()]
        struct = "\n".join(("struct Params {", *fields, "}"))
        used = self.features(body)
        head = [f"enable {name};" for name in used]
        if EXTENSION in used:
            head.append(TRUSTED)
        if self.shuffles:
            # that all lanes of a subgroup come here together is known from the lowering, not from the text
            head.append("diagnostic(off, subgroup_uniformity);")
        parts = ["\n".join(head), struct, needed(body), body]
        held = tuple((extents(b.shape), b.dtype.bytes) for b in self.workspaces)
        extra = {
            "bindings": self.bindings,
            "uniforms": tuple((name, self.uniform(v)) for name, v in self.numbered()),
            "features": tuple(FEATURES[name] for name in used),
            "subgroup": self.info.subgroup if self.shuffles or EXTENSION in used else 0,
            "workspaces": held,
            "resources": {"workgroup_bytes": self.workgroup_bytes},
        }
        spec = launch_spec(self.program, list(self.launches), extra, list(self.launches.values()))
        return Source("\n\n".join(p for p in parts if p) + "\n", "wgsl", ".wgsl", spec)

    def features(self, body: str) -> list[str]:
        matrices = PREFIX in body
        return [
            *["f16"] * ("f16" in body and self.scalars.half),
            *["subgroups"] * (self.shuffles or matrices),
            *[EXTENSION] * matrices,
        ]

    def numbered(self) -> list[tuple[str, Var]]:
        """Uniforms under names that no keyword of WGSL has."""
        return [(f"n{k}_{name}", v) for k, (name, v) in enumerate(self.uniforms())]

    def uniform(self, v: Var) -> str:
        """Type of a uniform: bool and f16 have none there (WGSL, host-shareable types; alignment of f16)."""
        register = self.scalars.register(v.dtype)
        return {"bool": "u32", "f16": "f32"}.get(register, register)


class Entry:
    """One entry point and the variables of the module that it uses."""

    def __init__(self, module: Module, launch: Launch, name: str) -> None:
        self.module, self.launch, self.name = module, launch, name
        self.info = module.info
        self.uses = Uses.of(launch.body)
        self.names = Names()
        self.bindings: list[tuple[str, str]] = []

    def lines(self) -> Iterator[str]:
        head = list(self.variables_of_module())
        visible = any(b.space is Space.GLOBAL and u.written and u.read for b, u in self.uses.found.items())
        addresses = Addresses.of(self.launch)
        printer = Printer(self.module.scalars, addresses, self.uses, self.names, visible)
        printer.memory.stored.update(self.stored)
        body = list(printer.block(self.launch.body, 1))
        yield from head
        yield f"@compute @workgroup_size({self.launch.thread_count})"
        yield f"fn {self.name}({', '.join(self.builtins(body))}) {{"
        yield from (f"  {line}" for line in self.numbers())
        yield from body
        yield "}"

    def builtins(self, body: list[str]) -> Iterator[str]:
        yield "@builtin(workgroup_id) block: vec3<u32>"
        yield "@builtin(local_invocation_index) invocation: u32"
        if any("subgroupShuffle" in line for line in body):
            self.module.shuffles = True
            yield "@builtin(subgroup_invocation_id) lane: u32"

    def numbers(self) -> Iterator[str]:
        """Block numbers, this thread's number, scalars and dimensions."""
        if len(self.launch.vars) > 3:
            raise Unsupported(
                f"a grid of {len(self.launch.vars)} dimensions, WebGPU has three", self.launch.span
            )
        for v, axis in zip(self.launch.vars, "xyz", strict=False):
            yield f"let {self.names.of(v)} = i32(block.{axis} + {self.params}.{FIRST}_{axis});"
        yield f"let {self.names.of(self.launch.thread_vars[0])} = i32(invocation);"
        for name, v in self.module.numbered():
            register = self.module.scalars.register(v.dtype)
            given = f"{self.params}.{name}"
            value = {"bool": f"{given} != 0u", "f16": f"f16({given})"}.get(register, given)
            yield f"let {self.names.of(v)}: {register} = {value};"

    def variables_of_module(self) -> Iterator[str]:
        """Bindings and tiles. Names are told apart from those of other entry points by the number of this one."""
        self.stored: dict[Buffer, Stored] = {}
        yield f"@group(0) @binding(0) var<uniform> {self.params}: Params;"
        for b in (b for b in self.uses.found if b.space is Space.GLOBAL):
            yield self.binding(b)
        self.refuse_too_many()
        tiles = variables(self.info, self.launch, self.uses, self.module.scalars, self.global_name)
        self.module.workgroup_bytes = max(self.module.workgroup_bytes, sum(v.bytes for v in tiles))
        for v in tiles:
            self.stored.update(v.tiles)
            yield v.declaration

    @property
    def params(self) -> str:
        return f"{self.name}_params"

    def global_name(self, b: Buffer) -> str:
        return f"{self.name}_{self.names.of(b)}"

    def binding(self, b: Buffer) -> str:
        parameter = self.module.tensors.get(b) or self.module.workspaces.get(b)
        if parameter is None:
            raise no_pointers(b)
        use = self.uses[b]
        form, cell = in_memory(b, use, self.module.scalars)
        stored = self.stored[b] = Stored(self.global_name(b), form, cell)
        access = "read_write" if use.written or form is Form.ATOMIC else "read"
        self.bindings.append((parameter, access))
        return f"@group(0) @binding({len(self.bindings)}) var<storage, {access}> {stored.name}: {stored.array()};"

    def refuse_too_many(self) -> None:
        limit = granted(self.info.target).buffers
        if len(self.bindings) > limit:
            raise Unsupported(
                f"a launch uses {len(self.bindings)} tensors, {self.info.target} lets it use {limit}",
                self.launch.span,
                why="the limit maxStorageBuffersPerShaderStage of WebGPU",
                help="split the kernel, or put tensors together",
            )
