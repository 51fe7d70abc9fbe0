"""Names of variables and buffers in WGSL: each gets one of its own that is no word of the language."""

from __future__ import annotations

from dataclasses import dataclass, field

from tile_core.expr import Buffer, Var

# WGSL, Keyword Summary and Reserved Words; predeclared types and functions that generated code calls.
_WORDS = """alias break case const const_assert continue continuing default diagnostic discard else enable false fn for if let loop
    override requires return struct switch true var while
    NULL Self abstract active alignas alignof as asm asm_fragment async attribute auto await become cast catch class co_await
    co_return co_yield coherent column_major common compile compile_fragment concept const_cast consteval constexpr constinit crate
    debugger decltype delete demote demote_to_helper do dynamic_cast enum explicit export extends extern external fallthrough
    filter final finally friend from fxgroup get goto groupshared highp impl implements import inline instanceof interface layout
    lowp macro macro_rules match mediump meta mod module move mut mutable namespace new nil noexcept noinline nointerpolation
    non_coherent noncoherent noperspective null nullptr of operator package packoffset partition pass patch pixelfragment
    precise precision premerge priv protected pub public readonly ref regardless register reinterpret_cast require resource
    restrict self set shared sizeof smooth snorm static static_assert static_cast std subroutine super target template this
    thread_local throw trait try type typedef typeid typename typeof union unless unorm unsafe unsized use using varying virtual
    volatile wgsl where with writeonly yield
    bool f16 f32 i32 u32 vec2 vec3 vec4 array atomic bitcast ptr select min max abs exp exp2 log log2 sqrt inverseSqrt floor ceil
    round trunc fma sin cos tan params block invocation lane at bits seen next done value place old"""
WORDS = frozenset(_WORDS.split())


@dataclass
class Names:
    """``prefix``: of every name, so that entry points of one module can declare variables apart."""

    prefix: str = ""
    names: dict[Buffer | Var, str] = field(default_factory=dict["Buffer | Var", str])
    taken: set[str] = field(default_factory=set[str])

    def of(self, x: Buffer | Var) -> str:
        found = self.names.get(x)
        if found is None:
            letters = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in x.name)
            plain = letters.strip("_") or "v"
            # names that could be those of temporaries or of functions end in an underscore
            plain = f"n{plain}" if plain[0].isdigit() else plain
            if plain.startswith("tile_") or (plain[0] in "vw" and plain[1:].isdigit()):
                plain = f"{plain}_"
            found, n = plain, 1
            while found in self.taken or found in WORDS:
                n += 1
                found = f"{plain}_{n}"
            self.names[x] = found
            self.taken.add(found)
        return found
