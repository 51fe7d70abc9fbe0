"""The table of helpers: both bodies, names, what is printed, and that the device's bodies are translated by NVRTC."""

from __future__ import annotations

import re

import pytest
from callers import batches, caller, runs_on

from tile_backend_cuda import atoms
from tile_backend_cuda.prelude import device_prelude, emulate, find, host_prelude, names, used
from tile_backend_cuda.prelude.__main__ import main
from tile_backend_cuda.prelude.matrix import atom_helper
from tile_backend_cuda.prelude.warpgroup import name_of

HELPERS = [h for n in names() if (h := find(n)) is not None]


def test_every_name_has_a_helper_with_both_bodies():
    listed = list(names())
    assert len(listed) == len(set(listed)) == len(HELPERS) > 1500
    for h in HELPERS:
        assert h.device.strip() and h.host.strip() and h.isa and h.family


def test_device_bodies_hold_no_trap():
    """Arrivals with .release.cluster cost a fence of the device (facts of the H200)."""
    for h in HELPERS:
        assert not re.search(r"arrive\S*\.release\.cluster", h.device) or h.name.startswith("cluster_")


def test_atoms_have_helpers():
    for table in (atoms.SM_75, atoms.SM_80, atoms.SM_89, atoms.SM_90, atoms.SM_120):
        for atom in table:
            assert find(atom_helper(atom.name)), atom.name
    for atom in atoms.wgmma(4096):
        a, b, d = (atoms.SHORT[t] for t in atom.types)
        for n in range(atom.step_n, 257, atom.step_n):
            assert find(name_of(n, d, a, b)), (atom.name, n)
            assert find(name_of(n, d, a, b, rs=True)), (atom.name, n)


@pytest.mark.parametrize(
    "name",
    [
        *("wgmma_m64n12k16_f32_bf16_ss", "wgmma_m64n264k16_f32_bf16_ss", "wgmma_m64n64k8_f32_bf16_ss"),
        *("wgmma_m64n64k8_f32_tf32_ss_bt", "wgmma_m64n40k32_s32_s8_ss", "wgmma_m64n64k16_f32_bf16_rs_at"),
        *("wgmma_m64n64k16_f16_bf16_ss", "wgmma_m64n64k16_f32_f16_f16_ss", "something"),
    ],
)
def test_instructions_that_do_not_exist(name: str):
    assert find(name) is None


def test_only_what_is_used_is_printed_and_in_one_order():
    text = "mbarrier_wait(a, b); exp_fast(x); wgmma_m64n64k16_f32_bf16_ss(d, a, b, 1); wgmma_m64n8k16_f32_bf16_ss(d, a, b, 1);"
    listed = [h.name for h in used(text)]
    assert set(listed) == {
        *("exp2_fast", "exp_fast", "mbarrier_try_wait", "mbarrier_wait"),
        *("wgmma_m64n8k16_f32_bf16_ss", "wgmma_m64n64k16_f32_bf16_ss"),
    }
    for h in used(text):
        assert all(listed.index(n) < listed.index(h.name) for n in h.needs)
    assert device_prelude(text) == device_prelude(" ".join(reversed(re.findall(r"\w+", text))))
    assert "#include" not in device_prelude(text)
    assert device_prelude("int x;") == device_prelude("") and "asm" not in device_prelude("")


def test_host_text_of_all_compiles(emulator: None):
    """Each host body is C++: a kernel names all of them, and one that only names the types runs."""
    text = "".join(caller(h) for h in HELPERS if not h.name.startswith("wgmma_m64n") or "n64k" in h.name)
    empty = 'extern "C" __global__ void k(int) {}\n'
    assert emulate.run(text + empty, "k", [1], grid=1, threads=1).clean
    assert "exp_fast" in host_prelude("exp_fast(x)")


def test_what_is_not_emulated_is_refused(emulator: None):
    text = 'extern "C" __global__ void k(u32 a) { tcgen05_cp_128x256b(a, 0); }\n'
    report = emulate.run(text, "k", [1024], grid=1, threads=32, shared_bytes=16)
    assert report.stopped and report.codes == {"unsupported"} and "tcgen05_cp_128x256b" in str(report)


def test_list_on_the_command_line(capsys: pytest.CaptureFixture[str]):
    main(["fence"])
    assert "void fence_proxy_async();  // sm_90, PTX ISA" in capsys.readouterr().out


# all of the small families; of wgmma the widths that differ in kind
SELECTED = [
    h for h in HELPERS if not (m := re.match(r"wgmma_m64n(\d+)k", h.name)) or m[1] in ("8", "104", "256")
]


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_89", "sm_90a", "sm_100a"])
def test_device_bodies_compile(arch: str):
    """Every helper that the architecture has, by NVRTC; no spill and no warning that costs speed."""
    toolkit = pytest.importorskip("tile_backend_cuda.compiler.toolkit")
    nvrtc = pytest.importorskip("tile_backend_cuda.compiler.nvrtc")
    try:
        compiler = nvrtc.loaded(toolkit.library(arch))
    except Exception as error:
        pytest.skip(f"no NVRTC for {arch}: {error}")
    for batch in batches([h for h in SELECTED if runs_on(h, arch)], 40):
        text = "".join(map(caller, batch))
        made = compiler.compile(
            device_prelude(text) + text, "helpers.cu", [f"-arch={arch}", "-std=c++17", "-Xptxas", "-v"]
        )
        assert made.cubin, made.log[:3000]
        # a commit or wait alone, as these kernels have it, makes ptxas add what it lacks
        warned = [w for w in made.log.splitlines() if re.search(r"C75\d\d|[1-9]\d* bytes spill", w)]
        assert not [w for w in warned if not re.search(r"'use_wgmma_(fence|commit|wait)'", w)], warned
