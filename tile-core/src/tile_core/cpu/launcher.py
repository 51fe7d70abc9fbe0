"""Runs object files on the worker threads of this process. Imports neither TVM nor numpy."""

from __future__ import annotations

import ctypes
import itertools
import mmap
import os
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from math import prod
from typing import Any

from .. import settings
from ..backend import Artifact, LaunchParam, LaunchSpec
from ..dtypes import ALL, dtype
from ..errors import BackendError, KernelError
from ..runtime.binding import evaluate
from ..span import Span

ALIGNMENT = 64  # of scratch blocks: a cache line, and the widest vector
WORTH_SHARING = 100e-6  # seconds of work; a hand-over to another thread and back takes about half of that
CHUNKS_PER_WORKER = 8  # ragged blocks even out over this many pieces of the grid for each worker


class CpuLauncher:
    """Loads artifacts into this process."""

    def load(self, artifact: Artifact, launch: LaunchSpec) -> CpuKernel:
        """Raises ``BackendError`` if the code needs features that this processor does not have."""
        from .machine import host

        missing = sorted(set(launch.extra.get("features", ())) - host().features)
        if missing:
            raise BackendError(
                f"this kernel was compiled for a processor with {', '.join(missing)}",
                help="compile it for this machine, or for a portable level such as cpu:x86_64_v3",
            )
        return CpuKernel(_engine(artifact.data), launch)

    def synchronize(self) -> None:
        """Launches return when they are done."""

    def current_stream(self) -> int | None:
        return None


def _engine(data: bytes) -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(jit=True)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(data))
    engine.finalize_object()
    return engine


SCALARS = {
    "bool": ctypes.c_uint8,
    "int8": ctypes.c_int8,
    "uint8": ctypes.c_uint8,
    "int16": ctypes.c_int16,
    "uint16": ctypes.c_uint16,
    "int32": ctypes.c_int32,
    "uint32": ctypes.c_uint32,
    "int64": ctypes.c_int64,
    "uint64": ctypes.c_uint64,
    "float64": ctypes.c_double,
}


def _scalar_type(name: str) -> Any:
    """How a scalar parameter is passed: floats up to 32 bits as float, small integers in a byte."""
    if name in SCALARS:
        return SCALARS[name]
    t = dtype(name)
    return ctypes.c_float if t.is_float else SCALARS[f"{t.kind}8"]


class CpuKernel:
    """A loaded program. Calls may come from several threads at once."""

    def __init__(self, engine: Any, launch: LaunchSpec) -> None:
        self._engine = engine  # owns the machine code
        self.launch = launch
        self._names = tuple(p.name for p in launch.params)
        kinds = [_argument_type(p) for p in launch.params]
        self._workspaces = [_Size(shape, size) for shape, size in launch.extra.get("workspaces", ())]
        kinds += [ctypes.c_void_p] * len(self._workspaces)
        self._entries = []
        for (name, _, _), sizes in zip(launch.entries, launch.extra["scratch"], strict=True):
            tail = [ctypes.c_void_p] * (len(sizes) + 1) + [ctypes.c_int64] * 2
            call = ctypes.CFUNCTYPE(ctypes.c_int32, *kinds, *tail)(engine.get_function_address(name))
            self._entries.append(_Entry(call, _offsets(sizes)))
        self._printer = _Printer(launch.extra.get("prints", ()))

    def __call__(
        self, arguments: Sequence[int | float], grids: Sequence[tuple[int, ...]], stream: int | None = None
    ) -> None:
        """Run all launches, one after the other. Raises ``KernelError`` if an assertion failed."""
        context = (ctypes.c_int64 * 2)(0, self._printer.address)
        keep = [w.allocate(dict(zip(self._names, arguments, strict=True))) for w in self._workspaces]
        given = (*arguments, *(address for address, _ in keep))
        for entry, grid in zip(self._entries, grids, strict=True):
            entry.run(given, context, grid)
            if context[0]:
                raise self._failure(context[0])

    def _failure(self, number: int) -> KernelError:
        message, place = self.launch.extra["failures"][number - 1]
        return KernelError(f"assertion failed: {message}", _span(place))


def _argument_type(p: LaunchParam) -> Any:
    return _scalar_type(p.dtype) if p.kind in ("scalar", "dim") else ctypes.c_void_p


def _span(place: dict[str, Any] | None) -> Span | None:
    if place is None:
        return None
    return Span(**{**place, "caller": _span(place.get("caller"))})


def _offsets(sizes: Sequence[int]) -> tuple[int, ...]:
    """Where each scratch block begins, and the size of all."""
    ends = itertools.accumulate((-(-n // ALIGNMENT) * ALIGNMENT for n in sizes), initial=0)
    return tuple(ends)


class _Entry:
    """One launch of the program."""

    def __init__(self, call: Callable[..., int], offsets: tuple[int, ...]) -> None:
        self.call = call
        self.offsets = offsets[:-1]
        self.size = offsets[-1]
        self.arenas: deque[_Arena] = deque()  # not in use now; pop and append are atomic
        self.block_seconds = float("inf")  # of the last run; a guess for the next

    def run(self, arguments: Sequence[int | float], context: Any, grid: tuple[int, ...]) -> None:
        blocks = prod(grid)
        if blocks == 0:
            return
        begin = time.perf_counter()
        workers = self._workers(blocks)
        if workers == 1:
            self._work(arguments, context, iter(((0, blocks),)))
        else:
            self._share(arguments, context, blocks, workers)
        self.block_seconds = (time.perf_counter() - begin) * workers / blocks

    def _workers(self, blocks: int) -> int:
        """One if the last run says that all blocks together take less than waking another thread does."""
        if blocks == 1 or self.block_seconds * blocks < WORTH_SHARING:
            return 1
        return min(worker_count(), blocks)

    def _share(self, arguments: Sequence[int | float], context: Any, blocks: int, workers: int) -> None:
        """Workers take pieces of the grid until none is left; the calling thread is one of them."""
        step = max(1, blocks // (workers * CHUNKS_PER_WORKER))
        starts = range(0, blocks, step)
        shared = _Shared(zip(starts, (*starts[1:], blocks), strict=True))
        others = [_pool(workers).submit(self._work, arguments, context, shared) for _ in range(workers - 1)]
        self._work(arguments, context, shared)
        _wait(others)

    def _work(self, arguments: Sequence[int | float], context: Any, chunks: Any) -> None:
        try:
            arena = self.arenas.pop()
        except IndexError:
            arena = _Arena(self.size)
        scratch = [arena.address + o for o in self.offsets]
        for begin, end in chunks:
            if context[0]:
                break
            self.call(*arguments, *scratch, context, begin, end)
        self.arenas.append(arena)


class _Shared:
    """An iterator that several threads take from."""

    def __init__(self, items: Any) -> None:
        self.items = items
        self.lock = threading.Lock()

    def __iter__(self) -> _Shared:
        return self

    def __next__(self) -> Any:
        with self.lock:
            return next(self.items)


def _wait(futures: Sequence[Future[None]]) -> None:
    """Wait for the workers that have begun; those that have not have nothing left to do."""
    for f in futures:
        if not f.cancel():
            f.result()


class _Arena:
    """Scratch memory of one worker: pages of the process, so that its address is aligned."""

    def __init__(self, size: int) -> None:
        try:
            self.pages = mmap.mmap(-1, max(size, mmap.PAGESIZE))
        except (OSError, OverflowError, ValueError) as error:
            raise BackendError(
                f"no memory of {size} bytes for the tiles of a block, or a workspace: {error}",
                help="make the tiles smaller",
            ) from error
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.pages))


class _Size:
    """Bytes of a workspace, from the dimensions of a call."""

    def __init__(self, shape: Sequence[int | str], element: int) -> None:
        self.shape = tuple(shape)
        self.element = element

    def allocate(self, names: dict[str, int | float]) -> tuple[int, Any]:
        """The address, and what keeps the memory alive."""
        arena = _Arena(prod(evaluate(d, names) for d in self.shape) * self.element)
        return arena.address, arena


def worker_count() -> int:
    """``TILE_THREADS``, or the processors this process may run on."""
    wanted = settings.current().threads
    if wanted:
        return wanted
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


@lru_cache(maxsize=4)
def _pool(workers: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max(1, workers - 1), thread_name_prefix="tile-cpu")


PRINT = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)


class _Printer:
    """Collects the values of a print statement, by thread, and prints the line when it is complete."""

    def __init__(self, sites: Sequence[tuple[str, Sequence[tuple[str, Sequence[int]]]]]) -> None:
        self.sites = sites
        self.found: dict[int, list[list[int | float | bool]]] = {}
        self.callback = PRINT(self._take) if sites else None
        self.address = ctypes.cast(self.callback, ctypes.c_void_p).value or 0 if self.callback else 0

    def _take(self, site: int, slot: int, bits: int) -> None:
        message, kinds = self.sites[site]
        thread = threading.get_ident()
        values = self.found.setdefault(thread, [[] for _ in kinds])
        if slot >= 0:
            values[slot].append(_decoded(bits, kinds[slot][0]))
            return
        del self.found[thread]
        texts = [_text(v, *kind) for v, kind in zip(values, kinds, strict=True)]
        line = " ".join(t for t in (message, *texts) if t)
        print(f"{line}\n", end="", flush=True)  # one write: lines of other threads must not come in between


def _decoded(bits: int, type_name: str) -> int | float | bool:
    t = ALL[type_name]
    if t.is_float:
        return struct.unpack("d", struct.pack("q", bits))[0]
    if t.is_bool:
        return bool(bits)
    return bits & ((1 << t.bits) - 1) if t.kind == "uint" else bits


def _text(values: list[int | float | bool], type_name: str, shape: Sequence[int]) -> str:
    """As numpy prints a value or a tile of the type. Imports numpy."""
    import numpy as np

    array = np.array(values).astype(ALL[type_name].as_numpy())
    return str(array.reshape(tuple(shape))[()])
