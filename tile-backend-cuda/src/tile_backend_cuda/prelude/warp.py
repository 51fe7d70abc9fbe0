"""Helpers of a warp: who a thread is, shuffles, votes, reductions, and asynchronous copies of a thread (cp.async)."""

from __future__ import annotations

from collections.abc import Iterator

from .device_function import Helper
from .spell import answer, asm, effect

SHFL = "Data Movement and Conversion Instructions: shfl.sync"
VOTE = "Parallel Synchronization and Communication Instructions: vote.sync"
REDUX = "Parallel Synchronization and Communication Instructions: redux.sync"
COPY = "Data Movement and Conversion Instructions: cp.async"
ALL = "0xffffffff"

# name: PTX mode, host's number, lower bound of the clamp
SHUFFLES = {
    "xor": ("bfly", 0, "0x1f"),
    "up": ("up", 1, "0"),
    "down": ("down", 2, "0x1f"),
    "idx": ("idx", 3, "0x1f"),
}


def _shuffles() -> Iterator[Helper]:
    for name, (mode, number, clamp) in SHUFFLES.items():
        for kind, letter in (("u32", "r"), ("float", "f")):
            text = asm(
                f"shfl.sync.{mode}.b32 %0, %1, %2, %3, {ALL};",
                [("=" + letter, "r")],
                [(letter, "v"), ("r", "n"), ("r", f"(32 - width) << 8 | {clamp}")],
            )
            suffix = "b32" if kind == "u32" else "f32"
            value = "v" if kind == "u32" else "cuda::bits_of(v)"
            host = f"cuda::shuffle({number}, {value}, n, width)"
            yield Helper(
                f"shfl_{name}_{suffix}",
                "warp",
                kind,
                f"{kind} v, int n, int width = 32",
                f"{kind} r; {text} return r;",
                f"return {host if kind == 'u32' else f'cuda::float_of({host})'};",
                SHFL,
            )
    uniform = asm(f"shfl.sync.idx.b32 %0, %1, 0, 0x1f, {ALL};", [("=r", "r")], [("r", "v")])
    yield Helper(
        "uniform",
        "warp",
        "int",
        "int v",
        f"int r; {uniform} return r;",
        "return (int)cuda::shuffle(3, (u32)v, 0, 32);",
        SHFL,
        note="the value of lane 0: tells the compiler that a warp number is the same in all lanes",
    )


def _votes() -> Iterator[Helper]:
    for name, host in (("any", "cuda::vote(v) != 0"), ("all", "cuda::vote(!v) == 0")):
        text = asm(
            f"{{\n.reg .pred p, q;\nsetp.ne.b32 p, %1, 0;\nvote.sync.{name}.pred q, p, {ALL};\nselp.u32 %0, 1, 0, q;\n}}",
            [("=r", "r")],
            [("r", "(u32)v")],
        )
        yield Helper(
            f"vote_{name}", "warp", "bool", "bool v", f"u32 r; {text} return r != 0;", f"return {host};", VOTE
        )
    ballot = asm(
        f"{{\n.reg .pred p;\nsetp.ne.b32 p, %1, 0;\nvote.sync.ballot.b32 %0, p, {ALL};\n}}",
        [("=r", "r")],
        [("r", "(u32)v")],
    )
    yield Helper(
        "vote_ballot",
        "warp",
        "u32",
        "bool v",
        f"u32 r; {ballot} return r;",
        "return cuda::vote(v);",
        VOTE,
    )
    yield answer(
        "match_any_b32",
        "warp",
        "u32",
        "u32 v",
        f"match.any.sync.b32 %0, %1, {ALL};",
        "cuda::match_any(v)",
        "Parallel Synchronization and Communication Instructions: match.sync",
    )
    reductions = (
        ("add", "u32", "u32", 0),
        ("add", "int", "s32", 0),
        ("min", "u32", "u32", 1),
        ("max", "u32", "u32", 2),
        ("min", "int", "s32", 3),
        ("max", "int", "s32", 4),
        ("and", "u32", "b32", 5),
        ("or", "u32", "b32", 6),
        ("xor", "u32", "b32", 7),
    )
    for operation, kind, ptx, number in reductions:
        yield answer(
            f"redux_{operation}_{ptx}",
            "warp",
            kind,
            f"{kind} v",
            f"redux.sync.{operation}.{ptx} %0, %1, {ALL};",
            f"({kind})cuda::reduce({number}, (u32)v)",
            REDUX,
            since=80,
        )


def _identity() -> Iterator[Helper]:
    lane = asm("mov.u32 %0, %%laneid;", [("=r", "r")], volatile=False)
    yield Helper(
        "lane_id",
        "warp",
        "u32",
        "",
        f"u32 r; {lane} return r;",
        "return machine::here->lane;",
        "Special Registers: %laneid",
    )
    elect = asm(
        f"{{\n.reg .pred p;\nelect.sync _|p, {ALL};\nselp.u32 %0, 1, 0, p;\n}}",
        [("=r", "r")],
    )
    yield Helper(
        "elect_one",
        "warp",
        "bool",
        "",
        f"u32 r; {elect} return r != 0;",
        "return cuda::elect();",
        "Parallel Synchronization and Communication Instructions: elect.sync",
        90,
    )
    yield Helper(
        "warp_sync",
        "warp",
        "void",
        "",
        f"__syncwarp({ALL}u);",
        "machine::subgroup_barrier(0xffffffffu);",
        "Parallel Synchronization and Communication Instructions: bar.warp.sync",
    )


def _copies() -> Iterator[Helper]:
    for size in (4, 8, 16):
        for path in ("ca", "cg") if size == 16 else ("ca",):
            name = f"cp_async_{size}" + ("_cg" if path == "cg" else "")
            text = f"cp.async.{path}.shared.global [%0], [%1], {size}"
            yield effect(
                name,
                "cp_async",
                "u32 a, const void* p",
                text + ";",
                f"cuda::copy_async(a, p, {size}, {size});",
                COPY,
                since=80,
            )
            # the rest of the destination is filled with zeros; p is not read when bytes is 0, but must be a valid address
            yield effect(
                name + "_zfill",
                "cp_async",
                "u32 a, const void* p, u32 bytes",
                text + ", %2;",
                f"cuda::copy_async(a, p, {size}, bytes);",
                COPY,
                since=80,
            )
    yield effect(
        "cp_async_commit", "cp_async", "", "cp.async.commit_group;", "cuda::copy_commit();", COPY, since=80
    )
    wait = asm("cp.async.wait_group %0;", ins=[("n", "N")], memory=True)
    yield Helper(
        "cp_async_wait", "cp_async", "void", "", wait, "cuda::copy_wait(N);", COPY, 80, template="int N"
    )
    yield effect(
        "cp_async_wait_all", "cp_async", "", "cp.async.wait_all;", "cuda::copy_wait_all();", COPY, since=80
    )
    yield effect(
        "cp_async_arrive",
        "cp_async",
        "u32 bar",
        "cp.async.mbarrier.arrive.noinc.shared.b64 [%0];",
        "cuda::copy_arrive(bar);",
        "Parallel Synchronization and Communication Instructions: cp.async.mbarrier.arrive",
        since=80,
    )


def helpers() -> Iterator[Helper]:
    yield from _identity()
    yield from _shuffles()
    yield from _votes()
    yield from _copies()
