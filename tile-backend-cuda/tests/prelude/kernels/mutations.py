"""Broken versions of a kernel: each wait, fence, barrier, arrival and commit left out once."""

from __future__ import annotations

import re
from collections.abc import Iterator

# what orders things; registers' holds and setmaxnreg mean nothing to a machine without a compiler's scheduler
ORDERING = (
    *(
        "cta_sync",
        "named_sync",
        "named_arrive",
        "warp_sync",
        "cluster_sync",
        "cluster_arrive",
        "cluster_wait",
    ),
    *(
        "mbarrier_init",
        "mbarrier_wait",
        "mbarrier_arrive",
        "mbarrier_arrive_expect_tx",
        "mbarrier_arrive_cluster",
    ),
    *("fence_mbarrier_init", "fence_proxy_async", "fence_proxy_async_shared"),
    *("wgmma_fence", "wgmma_commit", "wgmma_wait", "bulk_commit", "bulk_wait", "bulk_wait_read"),
    *("tcgen05_commit", "tcgen05_wait_ld", "tcgen05_wait_st", "tcgen05_alloc", "tcgen05_dealloc"),
    *("cp_async_commit", "cp_async_wait", "cp_async_wait_all"),
)
CALL = re.compile(rf"\b({'|'.join(sorted(ORDERING, key=len, reverse=True))})(?:<\d+>)?\(")


def _end(text: str, at: int) -> int:
    """Index after the parenthesis that closes the one before ``at``."""
    depth = 1
    while depth:
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        at += 1
    return at


def mutants(text: str) -> Iterator[tuple[str, str]]:
    """(what is left out, with its line; the text without it)"""
    for call in CALL.finditer(text):
        end = _end(text, call.end())
        line = text.count("\n", 0, call.start()) + 1
        yield f"{text[call.start() : end]} in line {line}", text[: call.start()] + "((void)0)" + text[end:]


def weakened(text: str) -> Iterator[tuple[str, str]]:
    """Waits that leave one group more in flight."""
    for call in re.finditer(r"\b(wgmma_wait|bulk_wait_read|bulk_wait|cp_async_wait)<(\d+)>", text):
        line = text.count("\n", 0, call.start()) + 1
        more = f"{call[1]}<{int(call[2]) + 1}>"
        yield f"{call[0]} as {more} in line {line}", text[: call.start()] + more + text[call.end() :]
