"""The cache on disk: warm processes, damage, other versions, many writers, folders that cannot be written."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tile_core.backend import Artifact, LaunchParam, LaunchSpec, Source
from tile_core.runtime.cache import Cache, CacheWarning, Entry, pack, unpack

SPEC = LaunchSpec(
    (LaunchParam("A", "tensor", "float32", (4, "n"), (), True, 4),),
    (("f", ("n", 2), (128,)),),
    (0,),
    {"x": 1},
)
ENTRY = Entry(
    Artifact("object", b"\0code\xff", "log", {"bytes": 3}), Source("text", "llvm", ".ll", SPEC), {"name": "f"}
)

KERNEL = """
import numpy as np
import tile_core as tile
import tile_core.language as T

@tile.jit(out_idx=[1])
def double(N, factor=2):
    @T.prim_func
    def kernel(X: T.Tensor((N,)), Y: T.Tensor((N,))):
        with T.Kernel(1):
            s = T.alloc_shared((N,), "float32")
            T.copy(X, s)
            for i in T.Parallel(N):
                s[i] = s[i] * factor
            T.copy(s, Y)
    return kernel

x = np.arange(8, dtype=np.float32)
kernel = double(8)
assert (kernel(x) == 2 * x).all()
"""


def process(tmp: Path, code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    file = tmp / "kernel_under_test.py"
    file.write_text(textwrap.dedent(code))
    env = {**os.environ, "TILE_CACHE_DIR": str(tmp / "cache"), "TILE_TARGET": "cpu", **environment}
    return subprocess.run([sys.executable, str(file)], env=env, capture_output=True, text=True, check=False)


def good(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stderr
    return done.stdout


def entries(tmp: Path) -> list[Path]:
    return sorted((tmp / "cache" / "kernels").glob("*/*.tile"))


def test_round_trip() -> None:
    found = unpack(pack(ENTRY))
    assert found.artifact == ENTRY.artifact
    assert found.source == ENTRY.source
    assert found.about["name"] == "f"


@pytest.mark.parametrize("cut", [0, 5, 20, 60, -1])
def test_truncated_bytes_are_refused(cut: int) -> None:
    with pytest.raises(ValueError, match="damaged"):
        unpack(pack(ENTRY)[:cut])


@pytest.mark.parametrize("at", [0, 20, 50, -1])
def test_changed_bytes_are_refused(at: int) -> None:
    data = bytearray(pack(ENTRY))
    data[at] ^= 1
    with pytest.raises(ValueError, match="damaged"):
        unpack(bytes(data))


def test_damaged_file_is_as_good_as_none(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    path = cache.put("ab" * 32, ENTRY)
    assert path is not None
    assert cache.get("ab" * 32) is not None
    path.write_bytes(path.read_bytes()[:-3])
    assert cache.get("ab" * 32) is None
    assert [r.name for r in cache.rows()] == [""]
    assert cache.clear() == 1


def test_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.warns(CacheWarning, match="TILE_CACHE_DIR"):
        assert Cache(tmp_path / "file").put("ab" * 32, ENTRY) is None


def test_least_recently_used_go_first(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    keys = [f"{n:02d}" * 32 for n in range(3)]
    for n, key in enumerate(keys):
        path = cache.put(key, ENTRY)
        assert path is not None
        os.utime(path, (n, n))
    cache.get(keys[0])
    cache.evict(2 * len(pack(ENTRY)) + 10)
    assert [cache.get(k) is not None for k in keys] == [True, False, True]


def test_warm_process_imports_neither_tvm_nor_z3(tmp_path: Path) -> None:
    good(process(tmp_path, KERNEL))
    assert len(entries(tmp_path)) == 1
    check = "\nimport sys\nfound = [m for m in ('tvm', 'tvm_ffi', 'z3', 'torch') if m in sys.modules]\nprint(found)"
    assert good(process(tmp_path, KERNEL + check)).strip() == "[]"


def test_damaged_entry_is_rebuilt(tmp_path: Path) -> None:
    good(process(tmp_path, KERNEL))
    (path,) = entries(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    good(process(tmp_path, KERNEL))
    assert len(path.read_bytes()) == len(whole)


def test_entry_of_another_version_is_rebuilt(tmp_path: Path) -> None:
    good(process(tmp_path, KERNEL))
    (path,) = entries(tmp_path)
    path.write_bytes(b"tile-kernel 0\n" + path.read_bytes()[14:])
    good(process(tmp_path, KERNEL))
    assert path.read_bytes().startswith(b"tile-kernel 1\n")


def test_two_processes_at_once(tmp_path: Path) -> None:
    file = tmp_path / "kernel_under_test.py"
    file.write_text(KERNEL)
    env = {**os.environ, "TILE_CACHE_DIR": str(tmp_path / "cache"), "TILE_TARGET": "cpu"}
    running = [
        subprocess.Popen([sys.executable, str(file)], env=env, stderr=subprocess.PIPE) for _ in range(3)
    ]
    for p in running:
        _, errors = p.communicate()
        assert p.returncode == 0, errors
    assert len(entries(tmp_path)) == 1
    assert not list((tmp_path / "cache").rglob(".new-*"))


def test_missing_home_only_warns(tmp_path: Path) -> None:
    (tmp_path / "no").write_text("")
    done = process(tmp_path, KERNEL, TILE_CACHE_DIR=str(tmp_path / "no" / "cache"))
    good(done)
    assert done.stderr.count("CacheWarning") == 1


def test_closed_over_values_make_another_kernel(tmp_path: Path) -> None:
    code = KERNEL.replace("factor=2", "factor=FACTOR").replace("import numpy", "FACTOR = 2\nimport numpy", 1)
    good(process(tmp_path, code))
    good(process(tmp_path, code))
    assert len(entries(tmp_path)) == 1
    three = code.replace("FACTOR = 2", "FACTOR = 3").replace("== 2 * x", "== 3 * x")
    good(process(tmp_path, three))
    assert len(entries(tmp_path)) == 2


def test_macros_make_another_kernel(tmp_path: Path) -> None:
    macro = "@T.macro\ndef scaled(x):\n    return x * 2\n"
    code = KERNEL.replace("@tile.jit", macro + "\n@tile.jit").replace("s[i] * factor", "scaled(s[i])")
    good(process(tmp_path, code))
    changed = code.replace("return x * 2", "return x * 2.0 + 1").replace("== 2 * x", "== 2 * x + 1")
    good(process(tmp_path, changed))
    assert len(entries(tmp_path)) == 2


def test_key_does_not_depend_on_what_was_built_before(tmp_path: Path) -> None:
    good(process(tmp_path, KERNEL))
    before = "other = double(16)\nother(np.zeros(16, np.float32))\n"
    good(process(tmp_path, KERNEL.replace("kernel = double(8)", before + "kernel = double(8)")))
    assert len(entries(tmp_path)) == 2
