"""Sum, maximum and minimum of a contiguous row as LLVM IR: several vectors of partial results, then one."""

from __future__ import annotations

from .writer import Function, Value, mangled, vector

ACCUMULATORS = 4  # independent chains that hide the latency of the adder
ELEMENTS = {"float32": ("float", 4), "float64": ("double", 8)}
STEP = {"max_nan": "maximum", "min_nan": "minimum"}
WHOLE = {"max": "fmax", "min": "fmin", "max_nan": "fmaximum", "min_nan": "fminimum"}
# the greater of NaN and x is x: starting from NaN skips NaN, and a row of nothing else gives NaN
START = {
    "sum": 0.0,
    "max": float("nan"),
    "min": float("nan"),
    "max_nan": float("-inf"),
    "min_nan": float("inf"),
}


def define(name: str, operation: str, type_name: str, vector_bytes: int) -> Function | None:
    """``<type> tile.reduce_<kind>[_nan].<type>(row, count)``."""
    if not operation.startswith("reduce_") or type_name not in ELEMENTS:
        return None
    kind = operation.removeprefix("reduce_")
    absolute = kind.startswith("abs")
    kind = kind.removeprefix("abs")
    kind = "sum" if kind.startswith("sum") else kind
    type, size = ELEMENTS[type_name]
    return _Writer(name, kind, absolute, type, size, vector_bytes // size).write()


class _Writer:
    def __init__(self, name: str, kind: str, absolute: bool, type: str, size: int, lanes: int) -> None:
        parameters = (("ptr noalias nocapture readonly", "row"), ("i64", "count"))
        self.b = Function(name, type, parameters, attributes="noinline nounwind")
        self.kind, self.absolute, self.type, self.size, self.lanes = kind, absolute, type, size, lanes
        self.vector = vector(lanes, type)

    def write(self) -> Function:
        b = self.b
        wide = self.lanes * ACCUMULATORS
        b.effect(f"%wide_end = sub i64 %count, {wide - 1}")
        b.effect(f"%vector_end = sub i64 %count, {self.lanes - 1}")
        start = b.const(START[self.kind], self.vector)
        b.effect("br label %wide_test")
        sums = self._loop("wide", "entry", "0", "%wide_end", wide, [start] * ACCUMULATORS, self.vector)
        total = sums[0]
        for s in sums[1:]:
            total = self._combine(total, s)
        b.effect("br label %vector_test")
        (total,) = self._loop(
            "vector", "wide_done", "%wide_at", "%vector_end", self.lanes, [total], self.vector
        )
        single = self._whole(total)
        b.effect("br label %scalar_test")
        (single,) = self._loop("scalar", "vector_done", "%vector_at", "%count", 1, [single], self.type)
        return b.give(single)

    def _loop(
        self, label: str, before: str, first: str, end: str, step: int, start: list[Value], type: str
    ) -> list[Value]:
        """A loop over the row from ``first`` while below ``end``; gives the partial results after it."""
        b = self.b
        b.label(f"{label}_test")
        b.effect(f"%{label}_at = phi i64 [ {first}, %{before} ], [ %{label}_next, %{label}_body ]")
        sums = [
            b.emit(type, f"phi {type} [ {s.text}, %{before} ], [ %{label}_sum{n}, %{label}_body ]")
            for n, s in enumerate(start)
        ]
        b.effect(f"%{label}_more = icmp slt i64 %{label}_at, {end}")
        b.effect(f"br i1 %{label}_more, label %{label}_body, label %{label}_done")
        b.label(f"{label}_body")
        for n, s in enumerate(sums):
            at = b.emit("i64", f"add i64 %{label}_at, {n * (step // len(sums))}")
            place = b.emit("ptr", f"getelementptr inbounds {self.type}, ptr %row, i64 {at.text}")
            x = b.emit(type, f"load {type}, ptr {place.text}, align {self.size}")
            x = b.intrinsic("fabs", x) if self.absolute else x
            result = self._combine(s, x)
            b.effect(f"%{label}_sum{n} = bitcast {type} {result.text} to {type}")
        b.effect(f"%{label}_next = add i64 %{label}_at, {step}")
        b.effect(f"br label %{label}_test")
        b.label(f"{label}_done")
        return sums

    def _combine(self, a: Value, x: Value) -> Value:
        if self.kind == "sum":
            return a + x
        step = STEP.get(self.kind)
        return self.b.intrinsic(step, a, x) if step else self.b.extremum(self.kind, a, x)

    def _whole(self, x: Value) -> Value:
        b = self.b
        if self.kind != "sum":
            return b.call(f"llvm.vector.reduce.{WHOLE[self.kind]}.{mangled(x.type)}", self.type, x)
        name = f"llvm.vector.reduce.fadd.{mangled(x.type)}"
        b.declared[name] = f"declare {self.type} @{name}({self.type}, {x.type})"
        zero = b.const(0.0, self.type)
        return b.emit(
            self.type, f"call reassoc {self.type} @{name}({self.type} {zero.text}, {x.type} {x.text})"
        )
