"""Worked loop bodies, and the facts of the targets that they are for, as data.

Costs in clocks of a core at 16 bits: matrix unit 4096 operations a clock (8192 and 2048 on the other two), 16 exponentials, 128
lanes, 128 bytes of shared memory, 56 bytes from the L2 cache; a bulk copy takes 700 clocks to arrive. Those of the Ascend and
Blackwell bodies are assumed.
"""

from __future__ import annotations

from dataclasses import replace

from tile_core.inference.schedule.model import Body, Op, Read, Storage, Stream, Unit

L2, SMEM, LATENCY = 56, 128, 700
KIB = 1024
HOPPER = (
    Unit("tensor", "group"),
    Unit("copy", "signal", in_order=False),
    Unit("sfu"),
    Unit("store"),
    Unit("shared", fluid=True),
    Unit("global", fluid=True),
)
BLACKWELL = (
    Unit("tensor", "signal"),
    Unit("copy", "signal", in_order=False),
    Unit("sfu"),
    Unit("shared", fluid=True),
)
AMPERE = (
    Unit("copy", "group"),
    Unit("load", "interlock"),
    Unit("tensor", "interlock"),
    Unit("shared", fluid=True),
)
CDNA3 = AMPERE
ROOM = {"shared": 227 * KIB}


def ring(name: str, space: str, size: int, most: int = 8, stream: str = "", filled: bool = False) -> Storage:
    return Storage(name, space, size, most, False, stream, filled=filled)


def kept(name: str, space: str, size: int, stream: str = "") -> Storage:
    return Storage(name, space, size, 1, True, stream)


def reads(*names: str) -> tuple[Read, ...]:
    return tuple(Read(n) for n in names)


def mma(m: int, n: int, k: int, rate: int = 4096) -> int:
    return 2 * m * n * k // rate


def bulk(name: str, stream: str, size: int, writes: str, hbm: float = 0) -> Op:
    busy = -(-size // L2)
    fluid = (("shared", size // SMEM), *((("global", int(size * hbm / 18.6)),) if hbm else ()))
    return Op(name, stream, "copy", busy, LATENCY + busy, 20, writes=(writes,), fluid=fluid)


def matrix(
    name: str,
    stream: str,
    m: int,
    n: int,
    k: int,
    used: tuple[str, ...] = (),
    writes: tuple[str, ...] = (),
    updates: tuple[str, ...] = (),
    a_shared: bool = True,
) -> Op:
    """Shared memory sends B once per 64 rows, and A once if it is not in registers."""
    size = (n * k * 2 * m // 64) + (m * k * 2 * -(-n // 256) if a_shared else 0)
    busy = mma(m, n, k)
    return Op(
        name,
        stream,
        "tensor",
        busy,
        busy + 30,
        20,
        reads(*used),
        writes,
        updates,
        (("shared", size // SMEM),),
    )


def consumers(registers: int = 216) -> tuple[Stream, ...]:
    return (Stream("P", 32), Stream("C0", 128, registers), Stream("C1", 128, registers))


def gemm_hopper() -> Body:
    """A 128x256x64 tile, one producer, two consumer warpgroups of 64 rows each."""
    ops = [bulk("loadA", "P", 128 * 64 * 2, "A"), bulk("loadB", "P", 64 * 256 * 2, "B")]
    ops += [matrix(f"mma{w}", f"C{w}", 64, 256, 64, ("A", "B"), (), (f"acc{w}",)) for w in (0, 1)]
    tiles = [ring("A", "shared", 128 * 64 * 2, filled=True), ring("B", "shared", 64 * 256 * 2, filled=True)]
    tiles += [kept(f"acc{w}", "register", 64 * 256 * 4, f"C{w}") for w in (0, 1)]
    return Body("gemm", HOPPER, consumers(200), tuple(tiles), tuple(ops), ROOM, 40)


def gemm_together() -> Body:
    """The same tile with both warpgroups in one stream."""
    ops = (
        bulk("loadA", "copy", 128 * 64 * 2, "A"),
        bulk("loadB", "copy", 64 * 256 * 2, "B"),
        matrix("mma", "main", 128, 256, 64, ("A", "B"), (), ("acc",)),
    )
    tiles = (
        ring("A", "shared", 128 * 64 * 2, filled=True),
        ring("B", "shared", 64 * 256 * 2, filled=True),
        kept("acc", "register", 128 * 256 * 4, "main"),
    )
    streams = (Stream("main", 256, cooperative=True), Stream("copy"))
    return Body("gemm together", HOPPER, streams, tiles, ops, ROOM, 40)


def attention_hopper(n: int = 128, d: int = 128, p: str = "register", slow: float = 1.0) -> Body:
    """Flash attention, 64 rows a warpgroup. ``p``: where the weights live; ``slow``: factor on the softmax."""
    ops = [bulk("loadK", "P", n * d * 2, "K"), bulk("loadV", "P", n * d * 2, "V")]
    tiles = [ring(x, "shared", n * d * 2, 3, filled=True) for x in "KV"]
    for w in (0, 1):
        more, own = _softmax(w, n, d, p, slow)
        ops += more
        tiles += own
    tiles.append(kept("Q", "shared", 2 * 64 * d * 2))
    name = f"attention n{n} weights in {p} x{slow}"
    return Body(name, HOPPER, consumers(), tuple(tiles), tuple(ops), ROOM, 40)


def _softmax(w: int, n: int, d: int, p: str, slow: float) -> tuple[list[Op], list[Storage]]:
    c, S, E, P, O, M, A = (f"C{w}", f"S{w}", f"e{w}", f"P{w}", f"O{w}", f"m{w}", f"alpha{w}")
    in_shared = p == "shared"

    def alu(count: int) -> int:
        return int(slow * count / 128)

    sfu = int(slow * 64 * n / 16)
    ops = [
        matrix(f"qk{w}", c, 64, n, d, ("K",), (S,)),
        Op(f"max{w}", c, latency=alu(64 * n) + 60, reads=reads(S), writes=(A,), updates=(M,)),
        # in place on S; E is the row sum
        Op(f"exp{w}", c, "sfu", sfu, sfu + alu(64 * n) + 20, 0, reads(S, A), (E,), (M,)),
        Op(f"cvt{w}", c, latency=alu(32 * n) + 20, reads=reads(S, E), writes=(P + "f" if in_shared else P,)),
        Op(f"rescale{w}", c, latency=alu(64 * d) + 10, reads=reads(A), updates=(O,)),
    ]
    tiles: list[Storage] = []
    if in_shared:
        size = 64 * n * 2
        ops.append(
            Op(
                f"storeP{w}",
                c,
                latency=size // SMEM + 60,
                reads=reads(P + "f"),
                writes=(P,),
                fluid=(("shared", size // SMEM),),
            )  # fmt: skip
        )
        tiles.append(ring(P + "f", "register", size, 1, c))
    ops.append(matrix(f"pv{w}", c, 64, d, n, (P, "V"), (), (O,), a_shared=in_shared))
    tiles += [
        ring(S, "register", 64 * n * 4, 2, c),
        kept(O, "register", 64 * d * 4, c),
        ring(P, p, 64 * n * 2, 2, c),
        kept(M, "register", 64 * 4 * 2, c),
        ring(A, "register", 64 * 4, 2, c),
        ring(E, "register", 64 * 4, 2, c),
    ]
    return ops, tiles


def attention_together(n: int = 128, d: int = 128, p: str = "shared") -> Body:
    """Both warpgroups in one stream, which share P through shared memory: barriers inside, signals outside."""
    ops, tiles = _softmax(0, n, d, p, 1.0)
    ops = [replace(o, stream="main", busy=2 * o.busy, latency=o.latency + o.busy) for o in ops]
    tiles = [replace(t, stream="main" if t.stream else "", bytes=2 * t.bytes) for t in tiles]
    ops = [bulk("loadK", "copy", n * d * 2, "K"), bulk("loadV", "copy", n * d * 2, "V"), *ops]
    tiles += [ring(x, "shared", n * d * 2, 3, filled=True) for x in "KV"]
    streams = (Stream("main", 256, cooperative=True), Stream("copy"))
    return Body(f"attention together, weights in {p}", HOPPER, streams, tuple(tiles), tuple(ops), ROOM, 40)


def chunk_scan_hopper(k: int = 64, state: int = 128, p: int = 64) -> Body:
    """Mamba-2 chunk scan: C B^T, decayed, times x; two warpgroups of 64 rows."""
    ops = [
        bulk("loadB", "P", k * state * 2, "B"),
        bulk("loadX", "P", k * p * 2, "X"),
        bulk("loadD", "P", k * 8, "D"),
    ]
    sizes = {"B": k * state * 2, "X": k * p * 2, "D": k * 8}
    tiles = [ring(n, "shared", size, filled=True) for n, size in sizes.items()]
    for w in (0, 1):
        c, sfu = f"C{w}", 64 * k // 16
        ops += [
            matrix(f"cb{w}", c, 64, k, state, ("B",), (f"S{w}",)),
            Op(f"decay{w}", c, "sfu", sfu, sfu + 64 * k * 4 // 128 + 40, 0, reads(f"S{w}", "D"), (f"W{w}",)),
            matrix(f"wx{w}", c, 64, p, k, (f"W{w}", "X"), (), (f"acc{w}",), a_shared=False),
        ]
        tiles += [
            ring(f"S{w}", "register", 64 * k * 4, 3, c),
            ring(f"W{w}", "register", 64 * k * 2, 3, c),
            kept(f"acc{w}", "register", 64 * p * 4, c),
        ]
    return Body("chunk scan", HOPPER, consumers(210), tuple(tiles), tuple(ops), ROOM, 40)


def dequant_hopper(n: int = 128, k: int = 64) -> Body:
    """W4A16, weights as the M side: dequantised into the A fragment."""
    ops = [bulk("loadW", "P", 128 * k // 2, "W", hbm=1), bulk("loadX", "P", n * k * 2, "X")]
    tiles = [ring("W", "shared", 128 * k // 2, filled=True), ring("X", "shared", n * k * 2, filled=True)]
    for w in (0, 1):
        c = f"C{w}"
        ops += [
            Op(f"dequant{w}", c, latency=64 * k * 3 // 128 + 90, reads=reads("W"), writes=(f"F{w}",)),
            matrix(f"mma{w}", c, 64, n, k, (f"F{w}", "X"), (), (f"acc{w}",), a_shared=False),
        ]
        tiles += [
            ring(f"F{w}", "register", 64 * k * 2, 3, c),
            kept(f"acc{w}", "register", 64 * n * 4, c),
        ]
    return Body("dequantised gemm", HOPPER, consumers(210), tuple(tiles), tuple(ops), ROOM, 40)


def gemm_ampere() -> Body:
    """128x128x32, four warps, two steps of k: a ring of copies and two register fragments."""
    ops = [Op("copy", "B", "copy", 341, 941, 40, writes=("T",), fluid=(("shared", 128),))]
    tiles = [ring("T", "shared", 2 * 128 * 32 * 2, 6, filled=True)]
    for j in (0, 1):
        ops.append(Op(f"load{j}", "B", "load", 128, 158, 16, reads("T"), (f"f{j}",), (), (("shared", 128),)))
        tiles.append(ring(f"f{j}", "register", 128 * 64 * 2, 2, "B"))
    busy = mma(128, 128, 16, 2048)
    ops += [Op(f"mma{j}", "B", "tensor", busy, busy + 30, 128, reads(f"f{j}"), (), ("acc",)) for j in (0, 1)]
    tiles.append(kept("acc", "register", 128 * 128 * 4, "B"))
    streams = (Stream("B", 128, 230, cooperative=True),)
    return Body("gemm of groups", AMPERE, streams, tuple(tiles), tuple(ops), {"shared": 163 * KIB}, 30)


def gemm_cdna3() -> Body:
    """128x128x32: copies to shared memory that are counted, reads of it, matrix unit."""
    busy = 2 * 128 * 128 * 32 // 2048
    ops = (
        Op("copy", "B", "copy", 256, 956, 60, writes=("T",), fluid=(("shared", 128),)),
        Op("read", "B", "load", 256, 316, 40, reads("T"), ("f",), (), (("shared", 256),)),
        Op("mfma", "B", "tensor", busy, busy + 30, 64, reads("f"), (), ("acc",)),
    )
    tiles = (
        ring("T", "shared", 2 * 128 * 32 * 2, 4, filled=True),
        ring("f", "register", 2 * 128 * 32 * 2, 2, "B"),
        kept("acc", "register", 128 * 128 * 4, "B"),
    )
    streams = (Stream("B", 256, 400, cooperative=True),)
    return Body("gemm of counted copies", CDNA3, streams, tiles, ops, {"shared": 64 * KIB}, 40)


def gemm_plain() -> Body:
    """One engine, block barriers only: nothing overlaps, two barriers an iteration with one slot."""
    ops = (
        Op("copy", "B", latency=400, writes=("T",)),
        Op("fma", "B", latency=2048, reads=reads("T"), updates=("acc",)),
    )
    tiles = (ring("T", "shared", 8192, 1), kept("acc", "register", 64 * 64 * 4, "B"))
    streams = (Stream("B", 256, 0, cooperative=True),)
    return Body("gemm of one engine", (), streams, tiles, ops, {"shared": 32 * KIB}, 0)


def attention_blackwell(n: int = 128, d: int = 128) -> Body:
    """Two tiles of 128 rows in tensor memory, a softmax warpgroup for each, one warpgroup that rescales."""
    ops = [bulk("loadK", "P", n * d * 2, "K"), bulk("loadV", "P", n * d * 2, "V")]
    tiles = [ring(x, "shared", n * d * 2, 3, filled=True) for x in "KV"]
    streams = (Stream("P", 32), Stream("M", 32), Stream("W0", 128), Stream("W1", 128), Stream("R", 128))
    t, sfu = mma(128, n, d, 8192), 128 * n // 16 * 3 // 4
    for w in (0, 1):
        S, O, A = f"S{w}", f"O{w}", f"al{w}"  # P overwrites S in tensor memory, so S is one slot
        ops += [
            Op(f"qk{w}", "M", "tensor", t, t + 60, 20, reads("K"), (), (S,)),
            Op(f"max{w}", f"W{w}", latency=n + 80, reads=reads(S), writes=(A,), updates=(f"m{w}",)),
            Op(f"exp{w}", f"W{w}", "sfu", sfu, sfu + 200, reads=reads(A), updates=(S,)),
            Op(f"fix{w}", "R", latency=d + 80, reads=reads(A), updates=(O,)),
            Op(f"pv{w}", "M", "tensor", t, t + 60, 20, reads(S, "V"), (), (O,)),
        ]
        tiles += [
            kept(S, "tensor", 128 * n * 4),
            kept(O, "tensor", 128 * d * 4),
            ring(A, "shared", 128 * 4, 2),
            kept(f"m{w}", "register", 128 * 4, f"W{w}"),
        ]
    tiles.append(kept("Q", "shared", 256 * d * 2))
    room = {**ROOM, "tensor": 256 * KIB}
    return Body("attention in tensor memory", BLACKWELL, streams, tuple(tiles), tuple(ops), room, 40)


def persistent_hopper(k_tiles: int = 16) -> Body:
    """The outer loop of a persistent gemm: its main loop is one op; two accumulators, one a warpgroup."""
    ops: list[Op] = []
    tiles: list[Storage] = []
    for w in (0, 1):
        c, main, store = f"C{w}", 512 * k_tiles, 64 * 256 * 2 // L2
        ops += [
            Op(f"main{w}", c, "tensor", main, main + 60, 100, writes=(f"acc{w}",)),
            Op(f"epilogue{w}", c, latency=1800, reads=reads(f"acc{w}"), writes=(f"C{w}s",)),
            Op(f"store{w}", c, "store", store, LATENCY + store, 20, reads(f"C{w}s")),
        ]
        tiles += [ring(f"acc{w}", "register", 64 * 256 * 4, 1, c), ring(f"C{w}s", "shared", 64 * 256 * 2, 1)]
    return Body("persistent gemm", HOPPER, consumers(200)[1:], tuple(tiles), tuple(ops), ROOM, 40)
