"""The inner loop of a matrix product as LLVM IR: a small block of c stays in vector registers over all of k."""

from __future__ import annotations

from dataclasses import dataclass

from .writer import Function, Value, lanes_of, vector

ELEMENTS = {"float32": ("float", 4), "float64": ("double", 8), "int32": ("i32", 4), "int64": ("i64", 8)}


@dataclass(frozen=True)
class Kernel:
    """``c[rows, vectors * lanes] += a[rows, k] b[k, vectors * lanes]``, all of one element type.

    Strides count elements: ``a_row`` and ``a_k`` of a, ``b_k`` between rows of b, ``c_row`` of c; b and c are contiguous
    along n. ``tail``: columns that count in the last vector. ``clear``: c starts at zero. ``masked``: b has no columns
    beyond ``tail``, so that they must not be read.
    """

    rows: int
    vectors: int
    lanes: int
    k: int
    a_row: int
    a_k: int
    b_k: int
    c_row: int
    tail: int
    clear: int
    masked: int


def define(name: str, operation: str, type_name: str, numbers: list[int]) -> Function | None:
    """``void tile.mma.<type>.<constants>(a, b, c)``: pointers to the first elements."""
    if operation != "mma":
        return None
    return _Writer(name, Kernel(*numbers), *ELEMENTS[type_name]).write()


UNROLL = 4


class _Writer:
    def __init__(self, name: str, kernel: Kernel, type: str, size: int) -> None:
        pointer = "ptr noalias nocapture"
        parameters = ((pointer + " readonly", "a"), (pointer + " readonly", "b"), (pointer, "c"))
        self.b = Function(name, "void", parameters, attributes="noinline nounwind")
        self.kernel, self.type, self.size = kernel, type, size
        self.vector = vector(kernel.lanes, type)

    def write(self) -> Function:
        b, kernel = self.b, self.kernel
        steps = UNROLL if kernel.k % UNROLL == 0 else 1
        places = [(i, v) for i in range(kernel.rows) for v in range(kernel.vectors)]
        start = [b.const(0, self.vector) if kernel.clear else self._load_c(i, v) for i, v in places]
        b.effect("br label %loop")
        b.label("loop")
        k = b.emit("i64", "phi i64 [ 0, %entry ], [ %next_k, %loop ]")
        a = b.emit("ptr", "phi ptr [ %a, %entry ], [ %next_a, %loop ]")
        rows = b.emit("ptr", "phi ptr [ %b, %entry ], [ %next_b, %loop ]")
        sums = [
            b.emit(self.vector, f"phi {self.vector} [ {s.text}, %entry ], [ %sum{n}, %loop ]")
            for n, s in enumerate(start)
        ]
        for step in range(steps):
            sums = self._step(step, a, rows, sums)
        for n, s in enumerate(sums):
            b.effect(f"%sum{n} = bitcast {self.vector} {s.text} to {self.vector}")
        b.effect(f"%next_a = getelementptr inbounds {self.type}, ptr {a.text}, i64 {steps * kernel.a_k}")
        b.effect(f"%next_b = getelementptr inbounds {self.type}, ptr {rows.text}, i64 {steps * kernel.b_k}")
        b.effect(f"%next_k = add nuw nsw i64 {k.text}, {steps}")
        b.effect(f"%more = icmp ult i64 %next_k, {kernel.k}")
        b.effect("br i1 %more, label %loop, label %done")
        b.label("done")
        for n, (i, v) in enumerate(places):
            self._store_c(i, v, Value(b, f"%sum{n}", self.vector))
        return b.give(None)

    def _step(self, step: int, a: Value, rows: Value, sums: list[Value]) -> list[Value]:
        b, kernel = self.b, self.kernel
        right = [
            self._load(
                self._at(rows, step * kernel.b_k + v * kernel.lanes), bool(kernel.masked) and self._partial(v)
            )
            for v in range(kernel.vectors)
        ]
        out = []
        for i in range(kernel.rows):
            left = self._splat(self._at(a, i * kernel.a_row + step * kernel.a_k))
            for v in range(kernel.vectors):
                out.append(b.multiply_add(left, right[v], sums[i * kernel.vectors + v]))
        return out

    def _at(self, base: Value, offset: int) -> Value:
        return self.b.emit("ptr", f"getelementptr inbounds {self.type}, ptr {base.text}, i64 {offset}")

    def _splat(self, place: Value) -> Value:
        b = self.b
        x = b.emit(self.type, f"load {self.type}, ptr {place.text}, align {self.size}")
        if lanes_of(self.vector) == 1:
            return x
        first = b.emit(self.vector, f"insertelement {self.vector} poison, {self.type} {x.text}, i64 0")
        mask = f"<{self.kernel.lanes} x i32> zeroinitializer"
        return b.emit(self.vector, f"shufflevector {self.vector} {first.text}, {self.vector} poison, {mask}")

    def _partial(self, v: int) -> bool:
        return v == self.kernel.vectors - 1 and self.kernel.tail < self.kernel.lanes

    def _mask(self) -> str:
        lanes = ", ".join(
            f"i1 {'true' if j < self.kernel.tail else 'false'}" for j in range(self.kernel.lanes)
        )
        return f"<{self.kernel.lanes} x i1> <{lanes}>"

    def _load(self, place: Value, partial: bool) -> Value:
        b = self.b
        if not partial:
            return b.emit(self.vector, f"load {self.vector}, ptr {place.text}, align {self.size}")
        lanes = f"<{self.kernel.lanes} x i1>"
        name = f"llvm.masked.load.v{self.kernel.lanes}{_short(self.type)}.p0"
        b.declared[name] = f"declare {self.vector} @{name}(ptr, i32, {lanes}, {self.vector})"
        return b.emit(
            self.vector,
            f"call {self.vector} @{name}(ptr {place.text}, i32 {self.size}, {self._mask()}, "
            f"{self.vector} zeroinitializer)",
        )

    def _load_c(self, i: int, v: int) -> Value:
        place = self._at(self.b.argument(2), i * self.kernel.c_row + v * self.kernel.lanes)
        return self._load(place, self._partial(v))

    def _store_c(self, i: int, v: int, value: Value) -> None:
        b = self.b
        place = self._at(b.argument(2), i * self.kernel.c_row + v * self.kernel.lanes)
        if not self._partial(v):
            b.effect(f"store {self.vector} {value.text}, ptr {place.text}, align {self.size}")
            return
        name = f"llvm.masked.store.v{self.kernel.lanes}{_short(self.type)}.p0"
        b.declared[name] = f"declare void @{name}({self.vector}, ptr, i32, <{self.kernel.lanes} x i1>)"
        b.effect(
            f"call void @{name}({self.vector} {value.text}, ptr {place.text}, i32 {self.size}, {self._mask()})"
        )


def _short(type: str) -> str:
    return {"float": "f32", "double": "f64"}.get(type, type)
