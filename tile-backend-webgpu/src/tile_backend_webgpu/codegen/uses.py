"""How the statements of a launch use each buffer: what its form in WGSL is chosen by."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tile_core.dtypes import DType
from tile_core.expr import Buffer, Load, loads
from tile_core.program import Atomic, Invoke, Place, Stmt, Store
from tile_core.program.visit import expressions, statements

from .instructions import moved_bytes
from .matrices import CALLS, is_matrix


@dataclass
class Use:
    """Of one storage. ``moved_in``, ``moved_out``: bytes of the vectors written to it and read from it.

    ``whole``: matrices are loaded from it or stored to it. ``matrix``: the type of those that it consists of.
    """

    dtypes: set[DType] = field(default_factory=set[DType])
    read: bool = False
    stored: set[DType] = field(default_factory=set[DType])
    moved_in: set[int] = field(default_factory=set[int])
    moved_out: set[int] = field(default_factory=set[int])
    atomic: set[DType] = field(default_factory=set[DType])
    whole: bool = False
    matrix: str = ""

    @property
    def written(self) -> bool:
        return bool(self.stored or self.moved_in or self.atomic)


@dataclass
class Uses:
    """By storage."""

    found: dict[Buffer, Use] = field(default_factory=dict[Buffer, Use])

    @staticmethod
    def of(body: Iterable[Stmt]) -> Uses:
        out = Uses()
        for s in statements(body):
            out.add(s)
        return out

    def __getitem__(self, b: Buffer) -> Use:
        use = self.found.setdefault(b.storage, Use())
        use.dtypes.add(b.dtype)
        return use

    def add(self, s: Stmt) -> None:
        for load in (load for x in expressions(s) for load in loads(x)):
            self.load(load)
        match s:
            case Store():
                self[s.buffer].stored.add(s.buffer.dtype)
            case Atomic():
                self[s.buffer].atomic.add(s.buffer.dtype)
                self[s.buffer].read = True
            case Invoke():
                for p in (a for a in s.arguments if isinstance(a, Place)):
                    self.place(s, p)
            case _:
                return

    def load(self, load: Load) -> None:
        self[load.buffer].read = True

    def place(self, s: Invoke, p: Place) -> None:
        use = self[p.buffer]
        if s.function in CALLS:
            use.matrix = p.type if is_matrix(p) else ""
            use.whole = not is_matrix(p)
            use.read |= "r" in p.access
            if use.whole and "w" in p.access:
                use.stored.add(p.buffer.dtype)
            return
        size = moved_bytes(s)
        if "r" in p.access:
            use.read = True
            use.moved_out.add(size)
        if "w" in p.access:
            use.moved_in.add(size)
