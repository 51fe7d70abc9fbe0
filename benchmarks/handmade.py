"""Attention and MLA kernels written by hand for Hopper as contestants: cubins that another generator made, started by the driver.

``folder/attention`` holds, for each kernel, a cubin with the entry ``fa_fwd`` and a JSON file of its parameters (``hd``, ``bm``,
``bn``, ``causal``, ``dt``, ``sched``, ``threads``, ``smem``); ``folder/mla`` holds ``meta.json``, a list of parameters (``name``,
``paged``, ``dtype``, ``nt``, ``smem``), a cubin with the entry ``mla_decode`` for each name, and ``gen.py``, whose ``schedule``
cuts the sequences into shares of the multiprocessors. Without these files there is no contestant.
"""

from __future__ import annotations

import ctypes as c
import importlib.util
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

Run = Callable[[Any], Any]
NAME = "handmade"
SHORT = {"bf16": "bfloat16", "f16": "float16"}
MAP_BYTES, MAP_ALIGNMENT = 128, 64  # of a CUtensorMap (CUDA driver API)
SECTION = 32 << 20  # bytes of keys and values whose blocks are dealt out together


def _ok(result: int) -> None:
    if result:
        raise RuntimeError(f"CUDA driver error {result}")


def _driver() -> Any:
    return c.CDLL("libcuda.so.1")


def _function(path: Path, entry: bytes, shared: int) -> c.c_void_p:
    import torch

    torch.zeros(1, device="cuda")
    driver, module, function = _driver(), c.c_void_p(), c.c_void_p()
    _ok(driver.cuModuleLoadData(c.byref(module), path.read_bytes()))
    _ok(driver.cuModuleGetFunction(c.byref(function), module, entry))
    _ok(driver.cuFuncSetAttribute(function, 8, shared))  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    return function


def _tensor_map(t: Any, sizes: Sequence[int], strides: Sequence[int], box: Sequence[int]) -> Any:
    """A map of 16-bit elements with the 128-byte swizzle. ``strides``: bytes, of all dimensions but the first."""
    import torch

    raw = c.create_string_buffer(MAP_BYTES + MAP_ALIGNMENT)
    found = (c.c_char * MAP_BYTES).from_buffer(raw, -c.addressof(raw) % MAP_ALIGNMENT)
    n, kind = len(sizes), {torch.bfloat16: 9, torch.float16: 6}[t.dtype]
    packed = (
        (c.c_uint64 * n)(*sizes),
        (c.c_uint64 * (n - 1))(*strides),
        (c.c_uint32 * n)(*box),
        (c.c_uint32 * n)(*[1] * n),
    )
    _ok(_driver().cuTensorMapEncodeTiled(found, kind, n, c.c_void_p(t.data_ptr()), *packed, 0, 3, 3, 0))
    return found


def _launch(function: c.c_void_p, grid: int, threads: int, shared: int, given: Sequence[Any]) -> None:
    import torch

    pointers = (c.c_void_p * len(given))(*[c.addressof(x) for x in given])
    stream = c.c_void_p(torch.cuda.current_stream().cuda_stream)
    _ok(_driver().cuLaunchKernel(function, grid, 1, 1, threads, 1, 1, shared, stream, pointers, None))


class _Sizes(c.Structure):
    _fields_ = [
        *((n, c.c_void_p) for n in ("o", "lse", "counter")),
        *((n, c.c_longlong) for n in ("o_row", "o_head", "o_batch")),
        *((n, c.c_int) for n in ("sq", "sk", "heads", "group", "mblocks", "tiles", "section", "bh")),
        *((n, c.c_float) for n in ("scale_log2", "scale")),
    ]


def attention(folder: Path, dim: int, causal: bool, dtype: str) -> dict[str, Run]:
    """Contestants of (q, k, v), each (batch, heads, tokens, dim), contiguous; the result has the same shape."""
    out: dict[str, Run] = {}
    for path in sorted((folder / "attention").glob("*.json")):
        given = json.loads(path.read_text(encoding="utf8"))
        if (given["hd"], bool(given["causal"]), SHORT[given["dt"]]) == (dim, causal, dtype):
            out[f"{NAME} {len(out)}" if out else NAME] = _attention(path.with_suffix(".cubin"), given)
    return out


def _attention(path: Path, given: dict[str, Any]) -> Run:
    import torch

    function = _function(path, b"fa_fwd", given["smem"])
    counter = torch.zeros(8, dtype=torch.int32, device="cuda")
    cores = torch.cuda.get_device_properties(0).multi_processor_count
    kept: dict[tuple[int, ...], tuple[Any, ...]] = {}

    def mapped(t: Any, rows: int) -> Any:
        b, h, s, d = t.shape
        sb, sh, ss, _ = (2 * x for x in t.stride())
        return _tensor_map(t, (64, s, d // 64, h, b), (ss, 128, sh, sb), (64, rows, d // 64, 1, 1))

    def prepared(q: Any, k: Any, v: Any) -> tuple[Any, ...]:
        o = torch.empty_like(q)
        b, h, s, d = q.shape
        blocks = -(-s // given["bm"])
        section = min(max(1, SECTION // (s * d * 4)), b * h)
        sizes = _Sizes(
            o.data_ptr(), None, counter.data_ptr(), o.stride(2), o.stride(1), o.stride(0),
            s, s, h, 1, blocks, blocks * b * h, section, b * h, d**-0.5 * math.log2(math.e), d**-0.5,
        )  # fmt: skip
        maps = [mapped(q, 64), mapped(k, given["bn"]), mapped(v, given["bn"]), mapped(o, 64)]
        return o, blocks * b * h, [*maps, sizes]

    def run(data: Any) -> Any:
        at = tuple(x.data_ptr() for x in data)
        if at not in kept:
            kept[at] = prepared(*data)
        o, tiles, arguments = kept[at]
        grid = tiles if given["sched"] == "none" else min(tiles, cores)
        _launch(function, grid, given["threads"], given["smem"], arguments)
        return o

    return run


def mla(folder: Path, row: Any, data: Any) -> dict[str, Run]:
    """Contestants of a row of ``mla_rows`` and its operands; work is cut up here, once."""
    described = folder / "mla" / "meta.json"
    if not described.exists():
        return {}
    spec = importlib.util.spec_from_file_location("handmade_mla", folder / "mla" / "gen.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    import sys

    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    out: dict[str, Run] = {}
    for given in json.loads(described.read_text(encoding="utf8")):
        if (SHORT[given["dtype"]], bool(given["paged"])) == (row.dtype, row.form == "paged"):
            function = _function(folder / "mla" / f"{given['name']}.cubin", b"mla_decode", given["smem"])
            out[f"{NAME} {len(out)}" if out else NAME] = _mla(function, module, given, row, data)
    return out


def _mla(function: c.c_void_p, module: Any, given: dict[str, Any], row: Any, data: Any) -> Run:
    import torch

    q, kv, lengths, *table = data
    shares = torch.cuda.get_device_properties(0).multi_processor_count // 2
    items, offsets, _, slots = module.schedule(row.lengths, shares, "fixup", 1.0)

    def integers(values: list[int]) -> Any:
        return torch.tensor(values or [0], dtype=torch.int32, device="cuda")

    out = torch.empty(row.batch, 128, 512, dtype=q.dtype, device="cuda")
    work = [integers(items), integers(offsets), lengths, table[0] if table else integers([])]
    scratch = [
        torch.empty((slots + 1) * 4 * 32 * 128 * 4, device="cuda"),
        torch.empty((slots + 1) * 4 * 64 * 2, device="cuda"),
        torch.zeros(slots * 4 + 4, dtype=torch.int32, device="cuda"),
    ]
    n, most = kv.shape[0], row.most
    cache = (
        _tensor_map(kv, (576, 64, n), (1152, 64 * 1152), (64, 64, 1))
        if table
        else _tensor_map(kv, (576, most, n), (1152, most * 1152), (64, 64, 1))
    )
    maps = [
        _tensor_map(q, (576, row.batch * 128), (1152,), (64, 64)),
        cache,
        _tensor_map(out, (512, row.batch * 128), (1024,), (64, 64)),
    ]
    arguments = [
        *maps,
        *(c.c_uint64(t.data_ptr()) for t in work),
        c.c_int(most // 64),
        *(c.c_uint64(t.data_ptr()) for t in scratch),
        c.c_float(576**-0.5 * math.log2(math.e)),
        c.c_uint64(kv.data_ptr()),
    ]
    kept = (work, scratch)

    def run(data: Any, kept: Any = kept) -> Any:
        _launch(function, 2 * shares, given["nt"], given["smem"], arguments)
        return out

    return run
