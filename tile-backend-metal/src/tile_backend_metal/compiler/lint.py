"""Rules of the Metal Shading Language that a host's C++ compiler does not know: a source in, what breaks them out.

Sections are those of "Metal Shading Language Specification" 4.0. Rows of ``WORDS`` and ``RULES`` are the whole of it; nothing here
stands in for Apple's compiler, which sees the source at the launch only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

THREADS, BUFFERS, THREADGROUP_BYTES = 1024, 31, 32768  # "Metal Feature Set Tables", Apple7 and later


@dataclass(frozen=True, slots=True)
class Fault:
    """What a line (1 is the first) breaks. ``rule`` is its name in ``RULES``."""

    rule: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.text} ({self.rule})"


@dataclass(frozen=True, slots=True)
class Text:
    """A source without its comments and literals of text, its lines where they were; and the version of the language."""

    code: str
    language: str

    def line(self, at: int) -> int:
        return self.code.count("\n", 0, at) + 1


Found = Iterator[tuple[int, str]]

# (pattern, what is wrong): 1.5.4 unless another section is named
WORDS = (
    (r"\bdouble\b", "there is no double: 2.1"),
    (r"\blong\s+long\b", "there is no long long: 2.1"),
    (r"\b\d+[uU]?(?:ll|LL)\b", "a literal of long long: 2.1"),
    (r"\b(?:goto|new|delete|virtual|dynamic_cast|typeid|noexcept|register|thread_local)\b", "not in MSL"),
    (r"\b(?:throw|try|catch)\b", "there are no exceptions"),
    (r"\b(?:struct|class)\s+\w+[^;{()]*?(?<!:):(?!:)[^;{()]*\{", "there are no derived classes"),
    (r"\bstd::", "there is no standard library of C++"),
    (r"\basm\b", "there is no assembly"),
    (r"\bprintf\b", "there is no printf"),
    (r"(?<![\w\]])\[[&=]?\]\s*\(", "no lambda before 3.2"),
)
ATTRIBUTES = frozenset(
    {
        *("kernel", "buffer", "threadgroup_position_in_grid", "thread_index_in_threadgroup"),
        *("thread_index_in_simdgroup", "simdgroup_index_in_threadgroup", "max_total_threads_per_threadgroup"),
    }
)
LIBRARY = frozenset(
    {
        *("floor", "ceil", "rint", "trunc", "fabs", "fmin", "fmax", "fmod", "fma", "popcount", "clz"),
        *("precise", "fast", "exp", "exp2", "exp10", "log", "log2", "log10", "sqrt", "rsqrt"),
        *("sin", "cos", "tan", "tanh", "pow"),
        *("threadgroup_barrier", "simdgroup_barrier", "mem_flags", "mem_device", "mem_threadgroup"),
        *("atomic_thread_fence", "memory_order_relaxed", "memory_order_seq_cst", "thread_scope_device"),
        *("atomic_load_explicit", "atomic_exchange_explicit", "atomic_compare_exchange_weak_explicit"),
        *(f"atomic_fetch_{op}_explicit" for op in ("add", "max", "min", "or", "and", "xor")),
        *("simd_shuffle", "simd_shuffle_up", "simd_shuffle_xor"),
        *("simdgroup_matrix", "simdgroup_multiply_accumulate", "simdgroup_load", "simdgroup_store"),
    }
)
SINCE = ((r"\bbfloat\b", "3.1"), (r"\batomic_thread_fence\b", "3.2"))
BYTES = {
    **dict.fromkeys(("bool", "char", "uchar", "fp8_e4m3_t", "fp8_e5m2_t"), 1),
    **dict.fromkeys(("short", "ushort", "half", "bfloat"), 2),
    **dict.fromkeys(("int", "uint", "float"), 4),
    **dict.fromkeys(("long", "ulong"), 8),
}

POINTER = re.compile(r"(?P<before>(?:\b\w+\s+)*)(?P<type>\b[\w:]+(?:<[^<>;()]*>)?)[*&](?![&=])")
SPACES = frozenset({"device", "constant", "threadgroup", "thread"})
KERNEL = re.compile(r"\[\[kernel\b[^\]]*\]\]\s*void\s+(\w+)\s*\(")
FUNCTION = re.compile(r"\b(\w+)\s*\([^;{}]*\)\s*\{")
DECLARED = re.compile(
    r"\b(?P<space>device|constant|threadgroup)\s+\w+\s*(?:[*&]\s*(?:const\s+)?)?(?P<name>\w+)\s*(?:\[|=)"
)
CAST = re.compile(r"\b(\w+)\s+\w+\*\s*(?:const\s+)?\w+\s*=\s*reinterpret_cast<(\w+)\s")
CALL = re.compile(
    r"\btile_(?:(?:move|fetch)\d+_(?P<to>\w+?)_from_(?P<source>\w+)|atomic_\w+_(?P<at>device|threadgroup)|(?P<product>simdgroup_multiply))"
    r"(?P<given>\(&[^;]*);"
)
STATEMENTS = frozenset({"if", "for", "while", "switch"})
VARIABLE = re.compile(
    r"^(?:static\s+)?(?:const\s+|constexpr\s+)*[\w:]+\s+\w+\s*(?:\[[^\]]*\]\s*)?=", re.MULTILINE
)


def _words(t: Text) -> Found:
    for pattern, text in WORDS:
        for m in re.finditer(pattern, t.code):
            yield m.start(), f"`{m[0].strip()[:40]}`: {text}"


def _versions(t: Text) -> Found:
    for pattern, since in SINCE:
        if number(t.language) < number(since):
            for m in re.finditer(pattern, t.code):
                yield m.start(), f"`{m[0]}` is there since {since}, this is {t.language}"


def _pointers(t: Text) -> Found:
    for m in POINTER.finditer(t.code):
        if not SPACES & set(m["before"].split()):
            yield m.start("type"), f"`{m['type']}{m[0][-1]}` has no address space: 4"


def _casts(t: Text) -> Found:
    for m in CAST.finditer(t.code):
        if m[1] in SPACES and m[1] != m[2]:
            yield m.start(), f"a cast from {m[2]} to {m[1]}: 4"


def _calls(t: Text) -> Found:
    """Our own functions say in their names which spaces they take."""
    for head, body in _bodies(t):
        spaces = {m["name"]: m["space"] for m in DECLARED.finditer(body)}
        for m in CALL.finditer(body):
            wanted = 3 * ["thread"] if m["product"] else [s for s in (m["to"], m["source"], m["at"]) if s]
            given = re.findall(r"[(,]\s*&(\w+)\[", m["given"])
            for name, space in zip(given, wanted, strict=False):
                if spaces.get(name, "thread") != space:
                    yield (
                        head.start() + m.start(),
                        f"`{name}` lies in {spaces.get(name, 'thread')}, not in {space}: 4",
                    )


def _attributes(t: Text) -> Found:
    for m in re.finditer(r"\[\[(.*?)\]\]", t.code, re.DOTALL):
        for name in re.findall(r"[A-Za-z_]\w*", re.sub(r"\([^)]*\)", "", m[1])):
            if name not in ATTRIBUTES:
                yield m.start(), f"attribute `{name}` is none that our kernels use: 5.2.3"


def _library(t: Text) -> Found:
    for m in re.finditer(r"\bmetal::(?:\w+::)*(\w+)", t.code):
        for name in m[0].split("::")[1:]:
            if name not in LIBRARY:
                yield m.start(), f"`{m[0]}` is no function of metal_stdlib that we know"


def _literals(t: Text) -> Found:
    for m in re.finditer(r"(?<![\w.])(?:\d+\.\d*|\.\d+)(?:e[+-]?\d+)?(?![\w.])", t.code):
        yield m.start(), f"`{m[0]}` has no suffix f: a host would take it for double"


def _threads(t: Text) -> Found:
    for m in re.finditer(r"max_total_threads_per_threadgroup\((\d+)\)", t.code):
        if not 0 < int(m[1]) <= THREADS:
            yield m.start(), f"{m[1]} threads in a threadgroup, at most {THREADS}"


def _bodies(t: Text) -> Iterator[tuple[re.Match[str], str]]:
    """Each kernel's head, and its text from there to the next kernel."""
    heads = list(KERNEL.finditer(t.code))
    for m, end in zip(heads, [h.start() for h in heads[1:]] + [len(t.code)], strict=True):
        yield m, t.code[m.start() : end]


def _threadgroup(t: Text) -> Found:
    for head, body in _bodies(t):
        sizes = re.findall(r"\bthreadgroup\s+(\w+)\s+\w+\s*\[\s*(\d+)\s*\]\s*;", body)
        total = sum(BYTES.get(type, 16) * int(n) for type, n in sizes)
        if total > THREADGROUP_BYTES:
            yield (
                head.start(),
                f"{head[1]} has {total} bytes of threadgroup memory, at most {THREADGROUP_BYTES}: 4.4",
            )


def _buffers(t: Text) -> Found:
    for head, body in _bodies(t):
        numbers = [int(n) for n in re.findall(r"\[\[buffer\((\d+)\)\]\]", body)]
        if numbers != list(range(len(numbers))) or len(numbers) > BUFFERS:
            yield (
                head.start(),
                f"{head[1]} has the buffers {numbers}, not 0 to at most {BUFFERS - 1} in order: 5.2.1",
            )


def _functions(code: str) -> dict[str, tuple[int, str]]:
    """Name -> where it stands and its body. Overloads are one."""
    found: dict[str, tuple[int, str]] = {}
    for m in FUNCTION.finditer(code):
        if m[1] in STATEMENTS:
            continue
        depth, at = 1, m.end()
        while depth and at < len(code):
            depth += {"{": 1, "}": -1}.get(code[at], 0)
            at += 1
        start, before = found.get(m[1], (m.start(), ""))
        found[m[1]] = start, before + code[m.end() : at]
    return found


def _recursion(t: Text) -> Found:
    functions = _functions(t.code)
    calls = {
        name: {c for c in re.findall(r"(?<![:.\w])(\w+)\s*(?:<[^<>;()]*>)?\(", body) if c in functions}
        for name, (_, body) in functions.items()
    }
    for name, (at, _) in functions.items():
        if name in OVERLOADED:
            continue
        seen: set[str] = set()
        open_ = set(calls[name])
        while open_:
            seen |= open_
            open_ = {c for s in open_ for c in calls[s]} - seen
        if name in seen:
            yield at, f"`{name}` calls itself, and nothing bounds the stack that this takes"


# functions whose overload of one type calls that of another
OVERLOADED = frozenset({"tile_shuffle_xor", "tile_shuffle_up", "tile_shuffle_at"})


def _variables(t: Text) -> Found:
    depth, at = 0, 0
    for line in t.code.split("\n"):
        m = VARIABLE.match(line) if depth == 0 and not line.startswith("using ") else None
        if m:
            yield at, f"`{m[0].strip()}` stands outside of functions and is not constant: 4.2"
        depth += line.count("{") - line.count("}")
        at += len(line) + 1


def _ascii(t: Text) -> Found:
    for m in re.finditer(r"[^\x00-\x7f]", t.code):
        yield m.start(), f"{m[0]!r} is not ASCII, which torch.mps.compile_shader takes"


RULES: dict[str, Callable[[Text], Found]] = {
    "words": _words,
    "versions": _versions,
    "address spaces": _pointers,
    "casts": _casts,
    "calls": _calls,
    "attributes": _attributes,
    "library": _library,
    "literals": _literals,
    "threads": _threads,
    "threadgroup memory": _threadgroup,
    "buffers": _buffers,
    "recursion": _recursion,
    "variables": _variables,
    "characters": _ascii,
}
VERSIONED = re.compile(r"#if __METAL_VERSION__ >= (\d+)\n.*?#endif", re.DOTALL)
COMMENT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)


def number(language: str) -> int:
    """A version as ``__METAL_VERSION__`` has it (1.6.2): 310 for 3.1."""
    major, minor = map(int, language.split("."))
    return major * 100 + minor * 10


def _blank(m: re.Match[str]) -> str:
    return "\n" * m[0].count("\n")


def faults(source: str, language: str) -> tuple[Fault, ...]:
    """All that breaks a rule, by line. ``language`` is the version it is written in, such as 3.1."""
    code = COMMENT.sub(_blank, source)
    code = VERSIONED.sub(lambda m: m[0] if int(m[1]) <= number(language) else _blank(m), code)
    t = Text(code, language)
    found = [Fault(rule, t.line(at), text) for rule, find in RULES.items() for at, text in find(t)]
    return tuple(sorted(found, key=lambda f: (f.line, f.rule)))
