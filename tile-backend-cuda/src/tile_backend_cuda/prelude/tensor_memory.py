"""Helpers of tensor memory and of the matrix unit that adds up in it, tcgen05 (sm_100a, sm_103a).

One thread issues products; when those of a ``tcgen05_commit`` are done, an mbarrier is arrived at. Sums are read by all warps of a
warpgroup, each its own 32 lanes. ``tcgen05_fence_after`` follows a barrier or mbarrier wait that orders these instructions of
different threads, ``tcgen05_fence_before`` precedes one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .device_function import Helper
from .spell import asm, effect, elements, predicated, registers

ISA = "TensorCore 5th Generation Family Instructions: "
KINDS = ("f16", "tf32", "f8f6f4", "i8")
COLUMNS = (1, 2, 4, 8, 16, 32, 64, 128)  # that one load or store moves

BLACKWELL: dict[str, Any] = {"since": 100, "exact": True}
ONE = "cta_group::1"

# name, parameters, instruction, meaning for the emulator
SIMPLE = (
    ("alloc", "u32 a, u32 columns", f"alloc.{ONE}.sync.aligned.shared::cta.b32 [%0], %1;", "cuda::tmem_allocate(a, columns);"),
    ("dealloc", "u32 tensor, u32 columns", f"dealloc.{ONE}.sync.aligned.b32 %0, %1;", "cuda::tmem_free(tensor, columns);"),
    ("relinquish", "", f"relinquish_alloc_permit.{ONE}.sync.aligned;", ";"),
    ("commit", "u32 bar", f"commit.{ONE}.mbarrier::arrive::one.shared::cluster.b64 [%0];", "cuda::tmem_commit(bar);"),
    ("wait_ld", "", "wait::ld.sync.aligned;", "cuda::tmem_wait(true);"),
    ("wait_st", "", "wait::st.sync.aligned;", "cuda::tmem_wait(false);"),
    ("fence_before", "", "fence::before_thread_sync;", ";"),
    ("fence_after", "", "fence::after_thread_sync;", ";"),
    ("cp_128x256b", "u32 tensor, u64 descriptor", f"cp.{ONE}.128x256b [%0], %1;", 'cuda::not_emulated("tcgen05_cp_128x256b");'),
)  # fmt: skip


def _simple() -> Iterator[Helper]:
    for name, parameters, ptx, host in SIMPLE:
        yield effect(
            f"tcgen05_{name}",
            "tcgen05",
            parameters,
            f"tcgen05.{ptx}",
            host,
            f"{ISA}tcgen05.{name}",
            **BLACKWELL,
        )


def _products() -> Iterator[Helper]:
    for number, kind in enumerate(KINDS):
        text = predicated(f"tcgen05.mma.{ONE}.kind::{kind} [%0], %1, %2, %3, p;", 4)
        yield effect(
            f"tcgen05_mma_{kind}_ss",
            "tcgen05",
            "u32 tensor, u64 a, u64 b, u32 instruction, u32 scale_d",
            text,
            f"cuda::tmem_multiply({number}, tensor, a, b, instruction, scale_d);",
            ISA + "tcgen05.mma",
            **BLACKWELL,
        )


def _moves() -> Iterator[Helper]:
    for n in COLUMNS:
        load = asm(
            f"tcgen05.ld.sync.aligned.32x32b.x{n}.b32 {registers(n)}, [%{n}];",
            elements("d", n, "=r"),
            [("r", "tensor")],
            memory=True,
        )
        store = asm(
            f"tcgen05.st.sync.aligned.32x32b.x{n}.b32 [%0], {registers(n, 1)};",
            ins=[("r", "tensor"), *elements("s", n, "r")],
            memory=True,
        )
        for name, parameters, device, host in (
            ("ld", "u32* d, u32 tensor", load, f"cuda::tmem_load({n}, d, tensor);"),
            ("st", "u32 tensor, const u32* s", store, f"cuda::tmem_store({n}, tensor, s);"),
        ):
            yield Helper(
                f"tcgen05_{name}_32x32b_x{n}",
                "tcgen05",
                "void",
                parameters,
                device,
                host,
                f"{ISA}tcgen05.{name}",
                **BLACKWELL,
            )


def _descriptor() -> Helper:
    fields = "(u64)((a & 0x3FFFF) >> 4) | (u64)(leading >> 4) << 16 | (u64)(stride >> 4) << 32"
    code = "(u64)(swizzle == 128 ? 2 : swizzle == 64 ? 4 : swizzle == 32 ? 6 : 0) << 61"
    return Helper(
        "tcgen05_descriptor",
        "tcgen05",
        "u64",
        "u32 a, u32 leading, u32 stride, u32 swizzle",
        f"return {fields} | (u64)1 << 46 | {code};",
        "return cuda::tmem_descriptor(a, leading, stride, swizzle);",
        ISA + "Shared memory descriptor",
        **BLACKWELL,
        note="bytes, as for wgmma_descriptor",
    )


def helpers() -> Iterator[Helper]:
    yield from _simple()
    yield _descriptor()
    yield from _products()
    yield from _moves()
