"""Helpers that add several neighbouring elements, held in registers, to global memory: a pointer to each in, nothing out."""

from __future__ import annotations

from collections.abc import Iterator

from .device_function import Helper

ISA = "Parallel Synchronization and Communication Instructions: red"
# bits of an element -> words of 32 bits that one instruction takes
WORDS = (1, 2, 4)


def _half(kind: str, words: int) -> Helper:
    one = f"red_add_{kind}x2" if words == 1 else f"red_add_v{words}_{kind}x2"
    listed = ", ".join(f"v[{n}]" for n in range(words))
    body = f"const u32* v = reinterpret_cast<const u32*>(from); {one}(to, {listed});"
    since = 75 if kind == "f16" and words == 1 else 90
    return _helper(f"reduce_add_{kind}x{2 * words}", body, one, since)


def _float(words: int) -> Helper:
    one = f"red_add_v{words}_f32"
    listed = ", ".join(f"v[{n}]" for n in range(words))
    body = f"const float* v = reinterpret_cast<const float*>(from); {one}(to, {listed});"
    return _helper(f"reduce_add_f32x{words}", body, one, 90)


def _helper(name: str, body: str, one: str, since: int) -> Helper:
    return Helper(
        name, "atomic", "void", "void* to, const void* from", body, body, ISA, since=since, needs=(one,)
    )


def helpers() -> Iterator[Helper]:
    for words in WORDS:
        yield _half("f16", words)
        yield _half("bf16", words)
    for words in WORDS[1:]:
        yield _float(words)
