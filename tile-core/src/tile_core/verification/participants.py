"""Which threads of a block go which way: expressions of thread-level programs, for all threads of a block at once."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..expr import Binary, Cast, Const, Expr, Unary, Var
from ..expr.make import FOLD

Values = tuple[int, ...]


@dataclass
class Threads:
    """``known``: the value of a variable in each of ``count`` threads; what is not there is not known."""

    count: int
    known: dict[Var, Values] = field(default_factory=dict[Var, Values])

    def values(self, x: Expr) -> Values | None:
        """An integer or condition in each thread, a condition as 0 or 1; None if it does not follow from the thread's number."""
        match x:
            case Const() if not x.dtype.is_float:
                return (int(x.value),) * self.count
            case Var():
                return self.known.get(x)
            case Cast():
                return self.values(x.value)
            case Unary(op="not"):
                inner = self.values(x.value)
                return None if inner is None else tuple(int(not v) for v in inner)
            case Binary() if x.op in FOLD:
                a, b = self.values(x.a), self.values(x.b)
                if a is None or b is None:
                    return None
                f = FOLD[x.op]
                return tuple(int(f(m, n)) for m, n in zip(a, b, strict=True))
            case _:
                return None
