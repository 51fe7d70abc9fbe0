"""The only module that imports TVM: gives the names that lowering needs, and checks the version.

Importing it costs about a second. Only code that compiles imports it; a cached kernel runs without it.
"""

# TVM's functions have no types.
# pyright: standard

from __future__ import annotations

import inspect
import os
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from importlib import metadata
from typing import Any

from .errors import BackendError

TVM_VERSION = "0.27"
FFI_VERSION = "0.1.14"


@contextmanager
def _quiet_import() -> Generator[None, None, None]:
    """Undo what an import of TVM does to the process.

    It installs ``sys.excepthook`` and patches ``inspect.getfile``. tvm_ffi imports torch (1.2 s) if it can; without it
    only its DLPack short cut for torch is missing, which compilation never uses.
    """
    hook, getfile = sys.excepthook, inspect.getfile
    hide_torch = "torch" not in sys.modules
    if hide_torch:
        sys.modules["torch"] = None  # type: ignore[assignment]
    # TVM's type and function tables are not synchronised: keep the interpreter lock while inside it
    os.environ.setdefault("TVM_FFI_RELEASE_GIL_BY_DEFAULT", "0")
    try:
        yield
    finally:
        sys.excepthook, inspect.getfile = hook, getfile
        if hide_torch:
            del sys.modules["torch"]


def _check_versions() -> None:
    for package, wanted in (("apache-tvm", TVM_VERSION), ("apache-tvm-ffi", FFI_VERSION)):
        try:
            found = metadata.version(package)
        except metadata.PackageNotFoundError:
            raise BackendError(
                f"{package} is not installed", help=f'pip install "{package}=={wanted}.*"'
            ) from None
        if not (found + ".").startswith(wanted + "."):
            raise BackendError(
                f"{package} {found} is installed, {wanted}.* is needed",
                why="names and memory layouts of TVM change in every release",
                help=f'pip install "{package}=={wanted}.*"',
            )


_check_versions()
with _quiet_import():
    import tvm
    from tvm import sym, tirx
    from tvm.ir import IRModule, PointerType, PrimType, Range
    from tvm.tirx import (
        EQ,
        GE,
        GT,
        LE,
        LT,
        NE,
        Add,
        AllocBuffer,
        And,
        BitwiseAnd,
        BitwiseNot,
        BitwiseOr,
        BitwiseXor,
        BufferLoad,
        BufferStore,
        Cast,
        DeclBuffer,
        Div,
        Evaluate,
        FloatImm,
        For,
        ForKind,
        IfThenElse,
        IntImm,
        LShift,
        Max,
        Min,
        Mod,
        Mul,
        Not,
        Or,
        PrimFunc,
        RShift,
        Select,
        SeqStmt,
        Sub,
        Var,
        While,
    )
    from tvm.tirx import Bind as BindStmt

lock = threading.RLock()  # one compilation at a time


def pointer(name: str, dtype: str) -> Var:
    """A variable that points to elements of ``dtype`` in memory."""
    return Var(name, PointerType(PrimType(dtype), "global"))


def flat_buffer(name: str, dtype: str, size: int, data: Var | None = None) -> Var:
    """A one-dimensional buffer; over ``data`` if given, else storage of its own."""
    return tirx.decl_buffer((size,), dtype, name=name, data=data, scope="local", layout=None)  # type: ignore[arg-type]


def call_extern(dtype: str, name: str, *arguments: object) -> Any:
    """A call of a C function that may have effects."""
    return tirx.call_extern(dtype, name, *arguments)


def call_pure(dtype: str, name: str, *arguments: object) -> Any:
    """A call of a C function without effects."""
    return tirx.call_pure_extern(dtype, name, *arguments)


def target(kind: str, **options: object) -> Any:
    """A TVM target; an underscore in an option's name stands for a dash."""
    return tvm.target.Target({"kind": kind, **{k.replace("_", "-"): v for k, v in options.items()}})


def llvm_text(module: IRModule, to: object) -> str:
    """LLVM IR of a lowered module."""
    return tvm.get_global_func("target.build.llvm")(module, to).inspect_source("ll")


__all__ = [
    "EQ",
    "GE",
    "GT",
    "LE",
    "LT",
    "NE",
    "Add",
    "AllocBuffer",
    "And",
    "BindStmt",
    "BitwiseAnd",
    "BitwiseNot",
    "BitwiseOr",
    "BitwiseXor",
    "BufferLoad",
    "BufferStore",
    "Cast",
    "DeclBuffer",
    "Div",
    "Evaluate",
    "FloatImm",
    "For",
    "ForKind",
    "IRModule",
    "IfThenElse",
    "IntImm",
    "LShift",
    "Max",
    "Min",
    "Mod",
    "Mul",
    "Not",
    "Or",
    "PointerType",
    "PrimFunc",
    "PrimType",
    "RShift",
    "Range",
    "Select",
    "SeqStmt",
    "Sub",
    "Var",
    "While",
    "call_extern",
    "call_pure",
    "flat_buffer",
    "llvm_text",
    "lock",
    "pointer",
    "sym",
    "target",
    "tirx",
]
