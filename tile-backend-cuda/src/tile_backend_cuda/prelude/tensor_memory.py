"""Helpers of tensor memory and tcgen05 (sm_100a). The emulated machine has none of it: kernels with these can only be compiled."""

from __future__ import annotations

from collections.abc import Iterator

from .device_function import Helper
from .spell import asm, effect, elements, predicated, registers

ISA = "TensorCore 5th Generation Family Instructions: "
KINDS = ("f16", "tf32", "f8f6f4", "i8")


def _not_emulated(helper: Helper) -> Helper:
    return Helper(
        helper.name,
        helper.family,
        helper.returns,
        helper.parameters,
        helper.device,
        f'cuda::not_emulated("{helper.name}");',
        helper.isa,
        100,
        True,
        helper.template,
    )


def _rows() -> Iterator[Helper]:
    one = "cta_group::1"
    simple = (
        ("alloc", "u32 a, u32 columns", f"alloc.{one}.sync.aligned.shared::cta.b32 [%0], %1;"),
        ("dealloc", "u32 tensor, u32 columns", f"dealloc.{one}.sync.aligned.b32 %0, %1;"),
        ("relinquish", "", f"relinquish_alloc_permit.{one}.sync.aligned;"),
        ("commit", "u32 bar", f"commit.{one}.mbarrier::arrive::one.shared::cluster.b64 [%0];"),
        ("wait_ld", "", "wait::ld.sync.aligned;"),
        ("wait_st", "", "wait::st.sync.aligned;"),
        ("fence_before", "", "fence::before_thread_sync;"),
        ("fence_after", "", "fence::after_thread_sync;"),
        ("cp_128x256b", "u32 tensor, u64 descriptor", f"cp.{one}.128x256b [%0], %1;"),
    )
    for name, parameters, ptx in simple:
        yield effect(f"tcgen05_{name}", "tcgen05", parameters, f"tcgen05.{ptx}", ";", ISA + f"tcgen05.{name}")
    for kind in KINDS:
        text = predicated(f"tcgen05.mma.{one}.kind::{kind} [%0], %1, %2, %3, p;", 4)
        yield effect(
            f"tcgen05_mma_{kind}_ss",
            "tcgen05",
            "u32 tensor, u64 a, u64 b, u32 instruction, u32 scale_d",
            text,
            ";",
            ISA + "tcgen05.mma",
        )
    for n in (1, 2, 4, 8, 16, 32, 64, 128):
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
        yield Helper(
            f"tcgen05_ld_32x32b_x{n}",
            "tcgen05",
            "void",
            "u32* d, u32 tensor",
            load,
            ";",
            ISA + "tcgen05.ld",
        )
        yield Helper(
            f"tcgen05_st_32x32b_x{n}",
            "tcgen05",
            "void",
            "u32 tensor, const u32* s",
            store,
            ";",
            ISA + "tcgen05.st",
        )


def helpers() -> Iterator[Helper]:
    yield from map(_not_emulated, _rows())
