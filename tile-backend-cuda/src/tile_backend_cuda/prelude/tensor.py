"""Helpers of bulk copies: TMA tensor loads, stores and reductions of 1 to 5 dimensions, 1-D bulk copies, groups, st.async."""

from __future__ import annotations

from collections.abc import Iterator

from .device_function import Helper
from .spell import asm, effect

ISA = "Data Movement and Conversion Instructions: "
TENSOR = ISA + "cp.async.bulk.tensor"
BULK = ISA + "cp.async.bulk"
HINT = ".L2::cache_hint"


def _coordinates(rank: int) -> tuple[str, str, list[tuple[str, str]]]:
    """C++ parameters, the host's array, operands."""
    names = [f"c{i}" for i in range(rank)]
    return (
        ", ".join(f"int {n}" for n in names),
        f"const int at_[] = {{{', '.join(names)}}};",
        [("r", n) for n in names],
    )


def _tensor(
    name: str,
    rank: int,
    ptx: str,
    first: list[tuple[str, str, str]],
    host: str,
    form: str,
    mask: bool = False,
    hint: bool = False,
) -> Helper:
    """``form``: the operands, with C for the coordinates and 0, 1, 2 for those of ``first`` (type, name, constraint)."""
    parameters, array, coordinates = _coordinates(rank)
    n = len(first)
    listed = "{" + ", ".join(f"%{n + i}" for i in range(rank)) + "}"
    text = form
    for i in range(n):
        text = text.replace(f"<{i}>", f"%{i}")
    text = text.replace("<C>", listed)
    more: list[tuple[str, str]] = []
    extra = ""
    if mask:
        text, more, extra = text + f", %{n + rank}", [("h", "blocks")], ", u16 blocks"
    if hint:
        text, extra = text + f", %{n + rank + len(more)}", extra + ", u64 policy"
        more = [*more, ("l", "policy")]
    given = ", ".join(f"{t} {v}" for t, v, _ in first)
    return Helper(
        name,
        "tma",
        "void",
        f"{given}, {parameters}{extra}",
        asm(f"{ptx} {text};", ins=[*((c, v) for _, v, c in first), *coordinates, *more], memory=True),
        f"{array} {host}",
        TENSOR,
        90,
    )


def _loads() -> Iterator[Helper]:
    first = [("u32", "a", "r"), ("const TensorMap*", "map", "l"), ("u32", "bar", "r")]
    for rank in range(1, 6):
        base = f"cp.async.bulk.tensor.{rank}d.shared::cluster.global.mbarrier::complete_tx::bytes"
        for mask in (False, True):
            for hint in (False, True):
                name = f"tma_load_{rank}d" + "_multicast" * mask + "_hint" * hint
                ptx = base + ".multicast::cluster" * mask + HINT * hint
                call = f"cuda::tensor_load({rank}, a, map, bar, at_, {'blocks' if mask else '0'});"
                yield _tensor(name, rank, ptx, first, call, "[<0>], [<1>, <C>], [<2>]", mask, hint)


def _stores() -> Iterator[Helper]:
    first = [("const TensorMap*", "map", "l"), ("u32", "a", "r")]
    for rank in range(1, 6):
        base = f"cp.async.bulk.tensor.{rank}d.global.shared::cta.bulk_group"
        for hint in (False, True):
            yield _tensor(
                f"tma_store_{rank}d" + "_hint" * hint,
                rank,
                base + HINT * hint,
                first,
                f"cuda::tensor_store({rank}, map, a, at_, false);",
                "[<0>, <C>], [<1>]",
                hint=hint,
            )
        yield _tensor(
            f"tma_reduce_add_{rank}d",
            rank,
            f"cp.reduce.async.bulk.tensor.{rank}d.global.shared::cta.add.bulk_group",
            first,
            f"cuda::tensor_store({rank}, map, a, at_, true);",
            "[<0>, <C>], [<1>]",
        )
        yield _tensor(
            f"tma_prefetch_{rank}d",
            rank,
            f"cp.async.bulk.prefetch.tensor.{rank}d.L2.global",
            first[:1],
            "(void)map; (void)at_;",
            "[<0>, <C>]",
        )


def _bulk() -> Iterator[Helper]:
    load = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
    base = "u32 a, const void* p, u32 bytes, u32 bar"
    for mask, hint in ((False, False), (False, True), (True, False), (True, True)):
        more = ", u16 blocks" * mask + ", u64 policy" * hint
        operands = "".join(f", %{4 + i}" for i in range(mask + hint))
        yield effect(
            "bulk_load" + "_multicast" * mask + "_hint" * hint,
            "tma",
            base + more,
            load + ".multicast::cluster" * mask + HINT * hint + f" [%0], [%1], %2, [%3]{operands};",
            f"cuda::bulk_load(a, p, bytes, bar, {'blocks' if mask else '0'});",
            BULK,
            since=90,
        )
    store = "cp.async.bulk.global.shared::cta.bulk_group"
    yield effect(
        "bulk_store",
        "tma",
        "void* p, u32 a, u32 bytes",
        f"{store} [%0], [%1], %2;",
        "cuda::bulk_store(p, a, bytes, 0);",
        BULK,
        since=90,
    )
    yield effect(
        "bulk_store_hint",
        "tma",
        "void* p, u32 a, u32 bytes, u64 policy",
        f"{store}{HINT} [%0], [%1], %2, %3;",
        "cuda::bulk_store(p, a, bytes, 0);",
        BULK,
        since=90,
    )
    for number, kind in ((1, "f32"), (2, "noftz.f16"), (3, "noftz.bf16")):
        yield effect(
            f"bulk_reduce_add_{kind.split('.')[-1]}",
            "tma",
            "void* p, u32 a, u32 bytes",
            f"cp.reduce.async.bulk.global.shared::cta.bulk_group.add.{kind} [%0], [%1], %2;",
            f"cuda::bulk_store(p, a, bytes, {number});",
            ISA + "cp.reduce.async.bulk",
            since=90,
        )
    yield effect(
        "bulk_copy_cluster",
        "tma",
        "u32 far, u32 a, u32 bytes, u32 far_bar",
        "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];",
        "cuda::bulk_to_block(far, a, bytes, far_bar);",
        BULK,
        since=90,
    )


def _groups() -> Iterator[Helper]:
    yield effect(
        "bulk_commit",
        "tma",
        "",
        "cp.async.bulk.commit_group;",
        "cuda::bulk_commit();",
        ISA + "cp.async.bulk.commit_group",
        since=90,
    )
    for name, read, note in (
        ("bulk_wait", "", "the writes are visible to this thread"),
        ("bulk_wait_read", ".read", "shared memory may be written again; global memory is not yet written"),
    ):
        body = asm(f"cp.async.bulk.wait_group{read} %0;", ins=[("n", "N")], memory=True)
        yield Helper(
            name,
            "tma",
            "void",
            "",
            body,
            "cuda::bulk_wait(N);",
            ISA + "cp.async.bulk.wait_group",
            90,
            template="int N",
            note=note,
        )
    yield effect(
        "tensormap_prefetch",
        "tma",
        "const TensorMap* map",
        "prefetch.tensormap [%0];",
        "(void)map;",
        ISA + "prefetch",
        since=90,
    )


def _remote_stores() -> Iterator[Helper]:
    isa = ISA + "st.async"
    complete = "st.async.shared::cluster.mbarrier::complete_tx::bytes"
    yield effect(
        "st_async_b32",
        "tma",
        "u32 far, u32 v, u32 far_bar",
        f"{complete}.u32 [%0], %1, [%2];",
        "cuda::store_async(far, &v, 4, far_bar);",
        isa,
        since=90,
    )
    for bits, kind, suffix, parts in ((64, "u32x2", "v2.u32", "xy"), (128, "u32x4", "v4.u32", "xyzw")):
        n = len(parts)
        listed = "{" + ", ".join(f"%{i + 1}" for i in range(n)) + "}"
        body = asm(
            f"{complete}.{suffix} [%0], {listed}, [%{n + 1}];",
            ins=[("r", "far"), *(("r", f"v.{p}") for p in parts), ("r", "far_bar")],
            memory=True,
        )
        yield Helper(
            f"st_async_b{bits}",
            "tma",
            "void",
            f"u32 far, {kind} v, u32 far_bar",
            body,
            f"cuda::store_async(far, &v, {bits // 8}, far_bar);",
            isa,
            90,
        )


def helpers() -> Iterator[Helper]:
    yield from _loads()
    yield from _stores()
    yield from _bulk()
    yield from _groups()
    yield from _remote_stores()
