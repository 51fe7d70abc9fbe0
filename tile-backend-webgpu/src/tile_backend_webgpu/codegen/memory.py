"""Accesses of memory in WGSL: takes buffers, indices and values, gives the text of loads and stores in each form."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from tile_core.dtypes import DType
from tile_core.errors import InternalError
from tile_core.expr import Buffer, Const, Expr, Space, binary
from tile_core.program import Place

from .addresses import Addresses
from .scalars import WORD, ZERO, Scalars
from .storage import LANES, Form, Stored

LETTERS = "xyzw"
Text = Callable[[Expr], str]


@dataclass
class Memory:
    """``stored``: how each storage is declared. ``text`` prints an index."""

    scalars: Scalars
    addresses: Addresses
    text: Text
    stored: dict[Buffer, Stored] = field(default_factory=dict[Buffer, Stored])

    def of(self, b: Buffer) -> Stored:
        found = self.stored.get(b.storage)
        if found is None:
            raise InternalError(f"{b.name} is used but not declared")
        return found

    def at(self, b: Buffer, indices: Sequence[Expr]) -> Expr:
        """The number of an element in its variable, in elements of its own type."""
        stored = self.of(b)
        words = stored.form in (Form.WORDS, Form.ATOMIC)
        return self.addresses.flat(b, indices, stored.base * self.per_word(b.dtype) if words else stored.base)

    def per_word(self, t: DType) -> int:
        return WORD // self.scalars.width(t)

    # One element.

    def load(self, b: Buffer, indices: Sequence[Expr]) -> str:
        if b.space is Space.VAR:
            return self.of(b).name
        return self.element(b, self.at(b, indices))

    def element(self, b: Buffer, at: Expr) -> str:
        stored = self.of(b)
        match stored.form:
            case Form.PLAIN:
                return f"{stored.name}[{self.text(at)}]"
            case Form.VECTOR:
                group, lane = self.addresses.split(at, LANES)
                return f"{stored.name}[{self.text(group)}]{self.component(lane)}"
            case Form.WORDS | Form.ATOMIC:
                word, slot = self.addresses.split(at, self.per_word(b.dtype))
                if stored.cell == self.scalars.register(b.dtype) == "i32" and b.dtype.bits == WORD:
                    return f"atomicLoad(&{stored.name}[{self.text(word)}])"
                return self.scalars.taken(self.word(stored, word), self.text(slot), b.dtype)

    def component(self, lane: Expr) -> str:
        return f".{LETTERS[int(lane.value)]}" if isinstance(lane, Const) else f"[{self.text(lane)}]"

    def word(self, stored: Stored, number: Expr) -> str:
        """A word of memory as a u32."""
        cell = f"{stored.name}[{self.text(number)}]"
        if stored.form is not Form.ATOMIC:
            return cell
        return f"atomicLoad(&{cell})" if stored.cell == "u32" else f"bitcast<u32>(atomicLoad(&{cell}))"

    def put_word(self, stored: Stored, number: Expr, word: str) -> str:
        cell = f"{stored.name}[{self.text(number)}]"
        if stored.form is not Form.ATOMIC:
            return f"{cell} = {word};"
        return f"atomicStore(&{cell}, {word if stored.cell == 'u32' else f'bitcast<i32>({word})'});"

    def store(self, b: Buffer, indices: Sequence[Expr], value: str) -> Iterator[str]:
        if b.space is Space.VAR:
            yield f"{self.of(b).name} = {value};"
            return
        yield from self.put(b, self.at(b, indices), value)

    def put(self, b: Buffer, at: Expr, value: str) -> Iterator[str]:
        stored = self.of(b)
        if stored.form is Form.PLAIN:
            yield f"{stored.name}[{self.text(at)}] = {value};"
            return
        if stored.form is Form.VECTOR:
            raise InternalError(f"a component of {b.name} is written alone")
        word, slot = self.addresses.split(at, self.per_word(b.dtype))
        if self.scalars.width(b.dtype) == WORD:
            yield self.put_word(stored, word, self.scalars.bits(value, b.dtype))
            return
        place = self.text(slot)
        mask, bits = self.scalars.mask(place, b.dtype), self.scalars.placed(value, place, b.dtype)
        yield "{"
        yield f"  let at = {self.text(word)};"
        yield f"  let bits = {bits};"
        if stored.form is Form.WORDS:
            yield f"  {stored.name}[at] = ({stored.name}[at] & ~{mask}) | bits;"
        else:
            # each invocation changes bits of its own element only, so neighbours in the word are never lost
            yield f"  atomicAnd(&{stored.name}[at], ~{mask});"
            yield f"  atomicOr(&{stored.name}[at], bits);"
        yield "}"

    # Several elements.

    def move(self, to: Place, source: Place, size: int, inside: str) -> Iterator[str]:
        """Copy ``size`` bytes; zeros where ``inside`` (a condition, or "" for always) is false."""
        yield "{"
        if self._packed(to) and self._packed(source):
            words = self._words(source, size, inside)
            yield from words
            yield from self._put_words(to, [f"  w{n}" for n in range(len(words))])
        else:
            lines, values = self._values(source, size, inside)
            yield from lines
            yield from self._put_values(to, values)
        yield "}"

    def _packed(self, p: Place) -> bool:
        return self.of(p.buffer).form in (Form.WORDS, Form.ATOMIC)

    def _words(self, p: Place, size: int, inside: str) -> list[str]:
        stored = self.of(p.buffer)
        first, _ = self.addresses.split(self.at(p.buffer, p.indices), self.per_word(p.buffer.dtype))
        texts = [self.word(stored, binary("+", first, n)) for n in range(size * 8 // WORD)]
        return [f"  let w{n} = {_guarded(t, '0u', inside)};" for n, t in enumerate(texts)]

    def _put_words(self, p: Place, words: Sequence[str]) -> Iterator[str]:
        first, _ = self.addresses.split(self.at(p.buffer, p.indices), self.per_word(p.buffer.dtype))
        for n, word in enumerate(words):
            yield "  " + self.put_word(self.of(p.buffer), binary("+", first, n), word.strip())

    def _values(self, p: Place, size: int, inside: str) -> tuple[list[str], list[str]]:
        """Lines that read the elements, and the elements as text."""
        b, stored = p.buffer, self.of(p.buffer)
        count = size * 8 // self.scalars.width(b.dtype)
        at = self.at(b, p.indices)
        zero = ZERO[self.scalars.register(b.dtype)]
        match stored.form:
            case Form.VECTOR if count % LANES == 0:
                group, _ = self.addresses.split(at, LANES)
                rows = [f"{stored.name}[{self.text(binary('+', group, n))}]" for n in range(count // LANES)]
                empty = f"vec4<{stored.cell}>()"
                lines = [f"  let v{n} = {_guarded(row, empty, inside)};" for n, row in enumerate(rows)]
                return lines, [f"v{n // LANES}.{LETTERS[n % LANES]}" for n in range(count)]
            case Form.WORDS | Form.ATOMIC:
                per = self.per_word(b.dtype)
                parts = [self.scalars.taken(f"w{n // per}", str(n % per), b.dtype) for n in range(count)]
                return self._words(p, size, inside), parts
            case _:
                texts = [self.element(b, self.addresses.simple(binary("+", at, n))) for n in range(count)]
                lines = [f"  let v{n} = {_guarded(t, zero, inside)};" for n, t in enumerate(texts)]
                return lines, [f"v{n}" for n in range(count)]

    def _put_values(self, p: Place, values: Sequence[str]) -> Iterator[str]:
        b, stored = p.buffer, self.of(p.buffer)
        at = self.at(b, p.indices)
        match stored.form:
            case Form.VECTOR:
                group, _ = self.addresses.split(at, LANES)
                for n in range(0, len(values), LANES):
                    row = f"{stored.name}[{self.text(binary('+', group, n // LANES))}]"
                    yield f"  {row} = {_vector(values[n : n + LANES], stored.cell)};"
            case Form.WORDS | Form.ATOMIC:
                per = self.per_word(b.dtype)
                words = [
                    _joined(self.scalars, values[n : n + per], b.dtype) for n in range(0, len(values), per)
                ]
                yield from self._put_words(p, words)
            case _:
                for n, value in enumerate(values):
                    yield from (
                        f"  {line}" for line in self.put(b, self.addresses.simple(binary("+", at, n)), value)
                    )

    def bytes_of(self, p: Place) -> str:
        """Four elements of one byte as a u32."""
        b = p.buffer
        at = self.at(b, p.indices)
        if self._packed(p):
            return self.word(self.of(b), self.addresses.split(at, LANES)[0])
        parts = ", ".join(self.element(b, self.addresses.simple(binary("+", at, n))) for n in range(LANES))
        kind = "I" if b.dtype.kind == "int" else "U"
        return f"pack4x{kind}8(vec4<{self.scalars.register(b.dtype)}>({parts}))"


def _guarded(text: str, zero: str, inside: str) -> str:
    """A read outside of a binding is defined in WGSL (some value of it), so it may happen and its value be dropped."""
    return f"select({zero}, {text}, {inside})" if inside else text


def _vector(values: Sequence[str], cell: str) -> str:
    """A vec4; of all components of one in order, that itself."""
    name = values[0].partition(".")[0]
    if list(values) == [f"{name}.{c}" for c in LETTERS]:
        return name
    return f"vec4<{cell}>({', '.join(values)})"


def _joined(scalars: Scalars, values: Sequence[str], t: DType) -> str:
    return " | ".join(scalars.placed(v, str(n), t) for n, v in enumerate(values))
