"""Python names in a kernel: what an assignment means, and where a name has no one value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..dtypes import DType, dtype
from ..errors import KernelError
from ..expr import Binary, Const, Expr, Load, Var, cast, walk
from ..program import Bind, Store
from .scopes import DEVICE, NOTHING, PARALLEL, Scopes
from .several import is_several
from .tiles import NoValue, Tile, View, is_cell

LONG = 40  # parts of an expression; each use of a name repeats them: x = x * x would double them each time


class Names(Scopes):
    """Called by rewritten code for assignments; ``k`` is the number of a span."""

    def name(self, *names: str) -> None:
        """The next buffers are assigned to ``names``."""
        self.hints = names

    def unbound(self, *names: str) -> Any:
        out = tuple(NoValue(n, "it is used before anything is assigned to it") for n in names)
        return out[0] if len(out) == 1 else out

    def assign(self, k: int, name: str, value: Any, old: Any) -> Any:
        """``name = value``. A scalar cell is stored to; a value that reads memory is read now, once."""
        self.hints = ()
        if isinstance(value, Tile) and id(value.buffer) in self.fresh:
            self.fresh.discard(id(value.buffer))
            return value
        if (
            is_cell(old)
            and not isinstance(value, (NoValue, View))
            and not (isinstance(value, Tile) and value.ndim)
        ):
            with self.at(self.span(k)):
                self.emit(Store(old.buffer, (), cast(value, old.dtype), span=self.span(k)))
            return old
        if is_cell(value):
            value = value.as_expr()
        return self._bind(k, name, value) if isinstance(value, Expr) and self.impure(value) else value

    def settled(self, k: int, value: Any) -> Any:
        """The right side of an assignment to several targets: all of it is read before any target is written."""
        if is_several(value):
            return [self.settled(k, v) for v in value]
        value = value.as_expr() if is_cell(value) and id(value.buffer) not in self.fresh else value
        return self._bind(k, "value", value) if isinstance(value, Expr) and self.impure(value) else value

    def _bind(self, k: int, name: str, value: Expr) -> Var:
        var = Var(name, value.dtype, self.unique(name), span=self.span(k))
        self.emit(Bind(var, value, span=self.span(k)))
        return var

    def impure(self, value: Expr) -> bool:
        """Whether evaluating later, or twice, could differ or cost more: it reads memory, calls a function, or is long."""
        for count, x in enumerate(walk(value)):
            if isinstance(x, Load) or not isinstance(x, (Var, Const, Binary)):
                return True
            if count > LONG and self.launch is not None:
                return True
        return False

    def annotate(self, k: int, name: str, annotation: Any, value: Any, old: Any) -> Any:
        """``name: annotation = value`` or ``name: annotation``."""
        from .types import Tensor

        with self.at(self.span(k)):
            if isinstance(annotation, Tensor):
                return self.declare(name, annotation, old)
            if value is NOTHING:
                return old
            if isinstance(annotation, DType) or annotation in (int, float, bool):
                return self._bind(k, name, cast(value, dtype(annotation)))
        return self.assign(k, name, value, old)

    def declare(self, name: str, annotation: Any, old: Any) -> Any:
        """``A: T.Tensor(...)`` in an eager kernel. Overridden where arguments are known."""
        raise KernelError(
            f"{name} is declared as a tensor inside a kernel whose parameters are annotated already"
        )

    def entering(self, k: int, names: Sequence[str], values: Sequence[Any]) -> Any:
        """At the start of a body: names that it assigns have no one value if it runs many times."""
        if self.scopes[-1].kind not in (DEVICE, PARALLEL):
            return self._packed(values)
        why = "it is assigned in a loop that runs on the device, and read before that in the same iteration"
        return self._packed([self._spoiled(n, v, why, k) for n, v in zip(names, values, strict=True)])

    def leaving(
        self, k: int, dynamic: Any, names: Sequence[str], before: Sequence[Any], now: Sequence[Any]
    ) -> Any:
        """After a body that may have run any number of times: names that it assigned have no one value."""
        if not dynamic:
            return self._packed(now)
        why = "it was assigned in a loop or branch that the device decides about"
        out = [
            v if v is old else self._spoiled(n, v, why, k)
            for n, old, v in zip(names, before, now, strict=True)
        ]
        return self._packed(out)

    def _spoiled(self, name: str, value: Any, why: str, k: int) -> Any:
        if isinstance(value, NoValue) or is_cell(value):
            return value
        return NoValue(
            name, why, f"make it a mutable scalar first: {name} = T.alloc_var(dtype)", self.span(k)
        )

    @staticmethod
    def _packed(values: Sequence[Any]) -> Any:
        return values[0] if len(values) == 1 else tuple(values)

    def restored(self, test: Any, before: Any, now: Any) -> Any:
        """Names at the start of ``else``: as before ``if`` when the device decides."""
        return before if test is None else now
