"""Helpers of memory: vector loads and stores, places in shared memory, hints, fences, acquire and release, atomics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .device_function import Helper
from .spell import answer, asm, effect

LD, ST = "Data Movement and Conversion Instructions: ld", "Data Movement and Conversion Instructions: st"
ATOM, RED = (
    "Parallel Synchronization and Communication Instructions: atom",
    "Parallel Synchronization and Communication Instructions: red",
)
FENCE = "Parallel Synchronization and Communication Instructions: membar/fence"

# bits: C++ type, PTX type, constraint, registers
WIDTHS = {
    8: ("u8", "u8", "h", 1),
    16: ("u16", "u16", "h", 1),
    32: ("u32", "u32", "r", 1),
    64: ("u32x2", "v2.u32", "r", 2),
    128: ("u32x4", "v4.u32", "r", 4),
}
PARTS = ("x", "y", "z", "w")


def _load(name: str, parameters: str, address: str, ptx: str, bits: int, host: str, **more: Any) -> Helper:
    """``ptx``: the instruction up to its type; ``address``: (constraint, expression) of what stands in brackets."""
    kind, suffix, letter, count = WIDTHS[bits]
    where = address.split()
    policy = [("l", "policy")] if "policy" in parameters else []
    tail = f", %{count + 1}" if policy else ""
    if count == 1:
        text = f"{ptx}.{suffix} %0, [%1]{tail};"
        body = asm(text, [("=" + letter, "r")], [(where[0], where[1]), *policy], memory=True)
        device = f"{'u16' if bits == 8 else kind} r; {body} return ({kind})r;"
    else:
        listed = ", ".join(f"%{i}" for i in range(count))
        text = f"{ptx}.{suffix} {{{listed}}}, [%{count}]{tail};"
        outs = [("=" + letter, f"r.{p}") for p in PARTS[:count]]
        device = f"{kind} r; {asm(text, outs, [(where[0], where[1]), *policy], memory=True)} return r;"
    return Helper(name, "memory", kind, parameters, device, f"return {host}<{kind}>({where[1]});", LD, **more)


def _store(name: str, parameters: str, address: str, ptx: str, bits: int, host: str, **more: Any) -> Helper:
    kind, suffix, letter, count = WIDTHS[bits]
    where = address.split()
    policy = [("l", "policy")] if "policy" in parameters else []
    tail = f", %{count + 1}" if policy else ""
    values = (
        [(letter, "(u16)v" if bits == 8 else "v")]
        if count == 1
        else [(letter, f"v.{p}") for p in PARTS[:count]]
    )
    listed = "%1" if count == 1 else "{" + ", ".join(f"%{i + 1}" for i in range(count)) + "}"
    device = asm(
        f"{ptx}.{suffix} [%0], {listed}{tail};", ins=[(where[0], where[1]), *values, *policy], memory=True
    )
    return Helper(
        name, "memory", "void", parameters.format(kind=kind), device, f"{host}({where[1]}, v);", ST, **more
    )


def _vectors() -> Iterator[Helper]:
    for bits in WIDTHS:
        yield _load(f"ld_global_b{bits}", "const void* p", "l p", "ld.global", bits, "cuda::load")
        # the read-only path: only for memory that nobody writes while the kernel runs
        yield _load(f"ld_global_nc_b{bits}", "const void* p", "l p", "ld.global.nc", bits, "cuda::load")
        yield _load(f"ld_shared_b{bits}", "u32 a", "r a", "ld.shared", bits, "cuda::load_shared")
        yield _store(f"st_global_b{bits}", "void* p, {kind} v", "l p", "st.global", bits, "cuda::store")
        yield _store(f"st_shared_b{bits}", "u32 a, {kind} v", "r a", "st.shared", bits, "cuda::store_shared")
    for bits in (32, 64, 128):
        # streamed once: no place in L1
        stream = "ld.global.nc.L1::no_allocate"
        yield _load(f"ld_global_stream_b{bits}", "const void* p", "l p", stream, bits, "cuda::load")
        hint = "ld.global.L2::cache_hint"
        yield _load(
            f"ld_global_hint_b{bits}", "const void* p, u64 policy", "l p", hint, bits, "cuda::load", since=80
        )
        yield _store(
            f"st_global_stream_b{bits}", "void* p, {kind} v", "l p", "st.global.cs", bits, "cuda::store"
        )
        hint = "st.global.L2::cache_hint"
        yield _store(
            f"st_global_hint_b{bits}",
            "void* p, {kind} v, u64 policy",
            "l p",
            hint,
            bits,
            "cuda::store",
            since=80,
        )
        # memory of another block of the cluster, by an address from cluster_map
        far = "shared::cluster"
        yield _load(f"ld_cluster_b{bits}", "u32 a", "r a", f"ld.{far}", bits, "cuda::load_shared", since=90)
        yield _store(
            f"st_cluster_b{bits}",
            "u32 a, {kind} v",
            "r a",
            f"st.{far}",
            bits,
            "cuda::store_shared",
            since=90,
        )


def _places() -> Iterator[Helper]:
    family = "memory"
    extern = "extern __shared__ __align__(1024) unsigned char dynamic_shared_[];"
    yield Helper(
        "shared_dynamic",
        family,
        "unsigned char*",
        "",
        f"{extern} return dynamic_shared_;",
        "return machine::shared_dynamic();",
        "State Spaces: shared",
        note="the compiler is told 1024 bytes of alignment; a launch gives it as long as there are no static arrays",
    )
    yield Helper(
        "shared_address",
        family,
        "u32",
        "const void* p",
        "return (u32)__cvta_generic_to_shared(p);",
        "return machine::shared_address(p);",
        "Data Movement and Conversion Instructions: cvta",
    )
    yield Helper(
        "shared_base",
        family,
        "u32",
        "",
        "return ((u32)__cvta_generic_to_shared(shared_dynamic()) + 1023) & ~1023u;",
        "return machine::shared_address(machine::shared_dynamic());",
        "State Spaces: shared",
        needs=("shared_dynamic",),
        note="swizzles of 128 bytes repeat every 1024: ask for 1024 bytes more if there are static arrays as well",
    )


def _hints() -> Iterator[Helper]:
    isa = "Data Movement and Conversion Instructions: createpolicy"
    for which in ("evict_first", "evict_last", "evict_unchanged"):
        policy = asm(
            f"createpolicy.fractional.L2::{which}.b64 %0, 1.0;",
            [("=l", "r")],
        )
        yield Helper(
            f"l2_{which}", "memory", "u64", "", f"u64 r; {policy} return r;", "return 0;", isa, since=80
        )
    prefetch = "Data Movement and Conversion Instructions: prefetch"
    yield effect(
        "prefetch_l2", "memory", "const void* p", "prefetch.global.L2 [%0];", "(void)p;", prefetch, since=80
    )
    yield effect(
        "prefetch_l2_bulk",
        "memory",
        "const void* p, u32 bytes",
        "cp.async.bulk.prefetch.L2.global [%0], %1;",
        "(void)p;",
        "Data Movement and Conversion Instructions: cp.async.bulk.prefetch",
        since=90,
    )


def _order() -> Iterator[Helper]:
    for scope, since in (("cta", 75), ("gpu", 75), ("cluster", 90)):
        host = "machine::acquire_at(nullptr);" if scope == "gpu" else "machine::at(line_);"
        yield effect(f"fence_{scope}", "order", "", f"fence.acq_rel.{scope};", host, FENCE, since=since)
    flag = "(void*)p, cuda::second, v"
    yield answer(
        "ld_acquire_gpu_u32",
        "order",
        "u32",
        "const u32* p",
        "ld.acquire.gpu.global.u32 %0, [%1];",
        "(machine::poll(), machine::acquire_at(p), machine::atomic_read(p))",
        LD,
    )
    yield effect(
        "st_release_gpu_u32",
        "order",
        "u32* p, u32 v",
        "st.release.gpu.global.u32 [%0], %1;",
        f"machine::release_at(p); machine::atomic({flag});",
        ST,
    )
    yield effect(
        "red_release_gpu_add_u32",
        "order",
        "u32* p, u32 v",
        "red.release.gpu.global.add.u32 [%0], %1;",
        "machine::release_at(p); machine::atomic(p, cuda::add_u32, v);",
        RED,
    )
    yield answer(
        "atom_acq_rel_gpu_add_u32",
        "order",
        "u32",
        "u32* p, u32 v",
        "atom.acq_rel.gpu.global.add.u32 %0, [%1], %2;",
        "(machine::release_at(p), machine::acquire_at(p), machine::atomic(p, cuda::add_u32, v))",
        ATOM,
    )


WHOLE = (  # operation, C++ type, PTX type, host function, red too
    ("add", "u32", "u32", "add_u32"),
    ("add", "int", "s32", "add_u32"),
    ("min", "u32", "u32", "min_u32"),
    ("max", "u32", "u32", "max_u32"),
    ("min", "int", "s32", "min_s32"),
    ("max", "int", "s32", "max_s32"),
    ("and", "u32", "b32", "and_b32"),
    ("or", "u32", "b32", "or_b32"),
    ("xor", "u32", "b32", "xor_b32"),
    ("exch", "u32", "b32", "second"),
)


def _integers() -> Iterator[Helper]:
    for operation, kind, ptx, host in WHOLE:
        call = f"({kind})machine::atomic({{}}, cuda::{host}, (u32)v)"
        name = f"{operation}_{ptx}"
        yield answer(
            f"atomic_{name}",
            "atomic",
            kind,
            f"{kind}* p, {kind} v",
            f"atom.global.{operation}.{ptx} %0, [%1], %2;",
            call.format("p"),
            ATOM,
        )
        yield answer(
            f"atomic_shared_{name}",
            "atomic",
            kind,
            f"u32 a, {kind} v",
            f"atom.shared.{operation}.{ptx} %0, [%1], %2;",
            call.format("machine::shared_pointer(a)"),
            ATOM,
        )
        if operation != "exch":
            yield effect(
                f"red_{name}",
                "atomic",
                f"{kind}* p, {kind} v",
                f"red.global.{operation}.{ptx} [%0], %1;",
                call.format("p") + ";",
                RED,
            )
    yield answer(
        "atomic_cas_b32",
        "atomic",
        "u32",
        "u32* p, u32 expected, u32 v",
        "atom.global.cas.b32 %0, [%1], %2, %3;",
        "cuda::compare_and_swap(p, expected, v)",
        ATOM,
    )


def _floats() -> Iterator[Helper]:
    add = "cuda::float_of(machine::atomic({}, cuda::add_f32, cuda::bits_of({})))"
    yield answer(
        "atomic_add_f32",
        "atomic",
        "float",
        "float* p, float v",
        "atom.global.add.f32 %0, [%1], %2;",
        add.format("p", "v"),
        ATOM,
    )
    yield answer(
        "atomic_shared_add_f32",
        "atomic",
        "float",
        "u32 a, float v",
        "atom.shared.add.f32 %0, [%1], %2;",
        add.format("machine::shared_pointer(a)", "v"),
        ATOM,
    )
    yield effect(
        "red_add_f32",
        "atomic",
        "float* p, float v",
        "red.global.add.f32 [%0], %1;",
        add.format("p", "v") + ";",
        RED,
    )
    double = "u64 b; memcpy(&b, &v, 8); machine::atomic64(p, cuda::add_f64, b);"
    yield effect("red_add_f64", "atomic", "double* p, double v", "red.global.add.f64 [%0], %1;", double, RED)
    for kind, since in (("f16x2", 75), ("bf16x2", 90)):
        yield effect(
            f"red_add_{kind}",
            "atomic",
            "void* p, u32 v",
            f"red.global.add.noftz.{kind} [%0], %1;",
            f"machine::atomic(p, cuda::add_{kind}, v);",
            RED,
            since=since,
        )
    for count in (2, 4):
        names = [f"v{i}" for i in range(count)]
        listed = "{" + ", ".join(f"%{i + 1}" for i in range(count)) + "}"
        for kind, c_type, suffix, function in (
            ("f32", "float", "f32", "add_f32"),
            ("f16x2", "u32", "noftz.f16x2", "add_f16x2"),
            ("bf16x2", "u32", "noftz.bf16x2", "add_bf16x2"),
        ):
            bits = "cuda::bits_of({})" if kind == "f32" else "{}"
            check = f"cuda::check_vector(p, {4 * count}); "
            pieces = " ".join(
                f"machine::atomic((u32*)p + {i}, cuda::{function}, {bits.format(n)});"
                for i, n in enumerate(names)
            )
            flush, _, element = suffix.rpartition(".")
            yield effect(
                f"red_add_v{count}_{kind}",
                "atomic",
                "void* p, " + ", ".join(f"{c_type} {n}" for n in names),
                f"red.global.add{'.' + flush if flush else ''}.v{count}.{element} [%0], {listed};",
                check + pieces,
                RED,
                since=90,
            )


def helpers() -> Iterator[Helper]:
    yield from _places()
    yield from _vectors()
    yield from _hints()
    yield from _order()
    yield from _integers()
    yield from _floats()
