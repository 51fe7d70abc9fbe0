"""Helpers of barriers: block and named barriers, mbarriers with transaction counts, proxy fences, clusters, roles and launches."""

from __future__ import annotations

from collections.abc import Iterator

from .device_function import Helper
from .spell import answer, asm, effect

BAR = "Parallel Synchronization and Communication Instructions: bar/barrier"
MBAR = "Parallel Synchronization and Communication Instructions: mbarrier"
FENCE = "Parallel Synchronization and Communication Instructions: membar/fence"
CLUSTER = "Parallel Synchronization and Communication Instructions: barrier.cluster"


def _block() -> Iterator[Helper]:
    family = "barrier"
    yield Helper("cta_sync", family, "void", "", "__syncthreads();", "machine::block_barrier();", BAR)
    yield effect(
        "named_sync",
        family,
        "u32 id, u32 threads",
        "bar.sync %0, %1;",
        "machine::named_sync(id, threads);",
        BAR,
    )
    yield effect(
        "named_arrive",
        family,
        "u32 id, u32 threads",
        "bar.arrive %0, %1;",
        "machine::named_arrive(id, threads);",
        BAR,
    )
    yield Helper(
        "named_any",
        family,
        "bool",
        "u32 id, u32 threads, bool v",
        "u32 r; "
        + asm(
            "{\n.reg .pred p, q;\nsetp.ne.b32 p, %3, 0;\nbar.red.or.pred q, %1, %2, p;\nselp.u32 %0, 1, 0, q;\n}",
            [("=r", "r")],
            [("r", "id"), ("r", "threads"), ("r", "(u32)v")],
            memory=True,
        )
        + " return r != 0;",
        "return cuda::named_count(id, threads, v) != 0;",
        f"{BAR} (.red)",
    )
    number = "cuda::block_count(v)"
    size = "(machine::here->threads.x * machine::here->threads.y * machine::here->threads.z)"
    for name, back, device, host in (
        ("count", "u32", "__syncthreads_count(v)", number),
        ("any", "bool", "__syncthreads_or(v) != 0", f"{number} != 0"),
        ("all", "bool", "__syncthreads_and(v) != 0", f"{number} == {size}"),
    ):
        yield Helper(
            f"cta_{name}", family, back, "bool v", f"return {device};", f"return {host};", f"{BAR} (.red)"
        )


OWN, FAR = "shared::cta.b64", "shared::cluster.b64"
EXPECT = "mbarrier.arrive.expect_tx"

# name, parameters, PTX, host, since. A far barrier is an address from cluster_map; its arrival is never .release.cluster: with that
# the compiler puts a fence of the whole device before each one, which cost 20 to 45 % of a GEMM's speed. The default is a release,
# and what is ordered here (reads that a wait has completed) needs no wider fence.
ARRIVALS = (
    (
        "init",
        "u32 bar, u32 arrivals",
        "mbarrier.init.shared.b64 [%0], %1;",
        "barrier_init(bar, arrivals)",
        80,
    ),
    ("invalidate", "u32 bar", "mbarrier.inval.shared.b64 [%0];", "barrier_invalidate(bar)", 80),
    (
        "arrive",
        "u32 bar",
        "{\n.reg .b64 t;\nmbarrier.arrive.shared.b64 t, [%0];\n}",
        "barrier_arrive(bar, 1, 0)",
        80,
    ),
    (
        "arrive_count",
        "u32 bar, u32 arrivals",
        f"mbarrier.arrive.{OWN} _, [%0], %1;",
        "barrier_arrive(bar, arrivals, 0)",
        90,
    ),
    (
        "arrive_expect_tx",
        "u32 bar, u32 bytes",
        f"{EXPECT}.{OWN} _, [%0], %1;",
        "barrier_arrive(bar, 1, bytes)",
        90,
    ),
    (
        "expect_tx",
        "u32 bar, u32 bytes",
        f"mbarrier.expect_tx.relaxed.cta.{OWN} [%0], %1;",
        "barrier_expect(bar, bytes)",
        90,
    ),
    (
        "arrive_cluster",
        "u32 far_bar",
        f"mbarrier.arrive.{FAR} _, [%0];",
        "barrier_arrive(far_bar, 1, 0)",
        90,
    ),
    (
        "arrive_expect_tx_cluster",
        "u32 far_bar, u32 bytes",
        f"{EXPECT}.{FAR} _, [%0], %1;",
        "barrier_arrive(far_bar, 1, bytes)",
        90,
    ),
)


def _arrivals() -> Iterator[Helper]:
    for name, parameters, ptx, host, since in ARRIVALS:
        yield effect(
            f"mbarrier_{name}",
            "mbarrier",
            parameters,
            ptx,
            f"machine::{host};",
            f"{MBAR}.{name.removesuffix('_cluster').replace('arrive_', 'arrive.')}",
            since=since,
        )


def _waits() -> Iterator[Helper]:
    family = "mbarrier"
    for name, since, space, host in (
        ("try_wait", 90, "shared::cta", "(machine::barrier_wait(bar, parity), true)"),
        (
            "test_wait",
            80,
            "shared",
            "(machine::barrier_test(bar, parity) || (machine::poll(), false))",
        ),
    ):
        test = f"mbarrier.{name}.parity.{space}.b64 p, [%1], %2;"
        yield answer(
            f"mbarrier_{name}",
            family,
            "bool",
            "u32 bar, u32 parity",
            f"{{\n.reg .pred p;\n{test}\nselp.u32 %0, 1, 0, p;\n}}",
            host,
            f"{MBAR}.{name}",
            since=since,
        )
    yield Helper(
        "mbarrier_wait",
        family,
        "void",
        "u32 bar, u32 parity",
        "while (!mbarrier_try_wait(bar, parity)) {}",
        "machine::barrier_wait(bar, parity);",
        f"{MBAR}.try_wait",
        90,
        needs=("mbarrier_try_wait",),
        note="waits for the phase of this parity to complete; a fresh barrier passes parity 1",
    )


def _fences() -> Iterator[Helper]:
    family = "fence"
    yield effect(
        "fence_mbarrier_init",
        family,
        "",
        "fence.mbarrier_init.release.cluster;",
        "machine::barrier_fence_init();",
        FENCE,
        since=90,
        note="by the thread that initialised, before the barrier that lets others use it",
    )
    for name, space in (("fence_proxy_async", ""), ("fence_proxy_async_shared", ".shared::cta")):
        yield effect(
            name,
            family,
            "",
            f"fence.proxy.async{space};",
            "machine::proxy_fence();",
            FENCE,
            since=90,
            note="by each thread that wrote what TMA or wgmma reads after the next barrier, or read what TMA writes",
        )


def _cluster() -> Iterator[Helper]:
    family = "cluster"
    for name, register, host in (
        ("cluster_rank", "cluster_ctarank", "machine::here->rank"),
        ("cluster_size", "cluster_nctarank", "machine::here->ranks"),
    ):
        body = asm(f"mov.u32 %0, %%{register};", [("=r", "r")], volatile=False)
        yield Helper(
            name,
            family,
            "u32",
            "",
            f"u32 r; {body} return r;",
            f"return {host};",
            f"Special Registers: %{register}",
            90,
        )
    yield Helper(
        "cluster_map",
        family,
        "u32",
        "u32 a, u32 rank",
        "u32 r; "
        + asm(
            "mapa.shared::cluster.u32 %0, %1, %2;", [("=r", "r")], [("r", "a"), ("r", "rank")], volatile=False
        )
        + " return r;",
        "return cuda::address_in_block(a, rank);",
        "Data Movement and Conversion Instructions: mapa",
        90,
    )
    rows = (
        ("cluster_arrive", "barrier.cluster.arrive.release;", "machine::cluster_arrive(true);"),
        ("cluster_arrive_relaxed", "barrier.cluster.arrive.relaxed;", "machine::cluster_arrive(false);"),
        ("cluster_wait", "barrier.cluster.wait.acquire;", "machine::cluster_wait(true);"),
        (
            "cluster_sync",
            "barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;",
            "machine::cluster_arrive(true); machine::cluster_wait(true);",
        ),
    )
    for name, ptx, host in rows:
        yield effect(name, family, "", ptx, host, CLUSTER, since=90)


def _roles() -> Iterator[Helper]:
    isa = "Miscellaneous Instructions: setmaxnreg"
    for way in ("inc", "dec"):
        body = asm(f"setmaxnreg.{way}.sync.aligned.u32 %0;", ins=[("n", "R")])
        yield Helper(
            f"setmaxnreg_{way}",
            "role",
            "void",
            "",
            f'static_assert(R >= 24 && R <= 256 && R % 8 == 0, "registers of setmaxnreg"); {body}',
            'static_assert(R >= 24 && R <= 256 && R % 8 == 0, "registers of setmaxnreg");',
            isa,
            90,
            exact=True,
            template="int R",
        )
    launch = "Parallel Synchronization and Communication Instructions: griddepcontrol"
    for name, ptx in (
        ("griddep_wait", "griddepcontrol.wait;"),
        ("griddep_launch", "griddepcontrol.launch_dependents;"),
    ):
        yield effect(name, "launch", "", ptx, ";", launch, since=90)


def helpers() -> Iterator[Helper]:
    yield from _block()
    yield from _arrivals()
    yield from _waits()
    yield from _fences()
    yield from _cluster()
    yield from _roles()
