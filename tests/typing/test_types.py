"""What type checkers say: nothing of the packages and of the README's kernels; the language's names have real signatures."""

from __future__ import annotations

import importlib.util
import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tile_core.language as T
from tile_core.dtypes import DType

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
CALLABLE = [n for n in T.__all__ if callable(getattr(T, n)) and not isinstance(getattr(T, n), DType)]


def pyright(*files: Path, folder: Path) -> list[str]:
    """Errors that pyright reports for ``files`` as a user would check them."""
    (folder / "pyrightconfig.json").write_text(json.dumps({"typeCheckingMode": "standard"}))
    return checked(folder, len(files), *map(str, files))


def checked(folder: Path, count: int, *arguments: str) -> list[str]:
    """Errors that pyright reports in ``folder``, of at least ``count`` files. A missing checker is a failure, not a skip."""
    assert importlib.util.find_spec("pyright") is not None, "pip install 'pyright[nodejs]'"
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    report = json.loads(done.stdout[done.stdout.index("{") :])
    found = report["generalDiagnostics"]
    assert report["summary"]["filesAnalyzed"] >= count
    return [
        f"{d['file']}:{d['range']['start']['line'] + 1}: {d['message']}"
        for d in found
        if d["severity"] == "error"
    ]


def test_pyright_finds_nothing_in_the_packages() -> None:
    """With the repository's own configuration: strict for all that is public."""
    files = [f for f in ROOT.glob("tile-*/src/**/*.py") if f.parts[-2:] != ("testing", "kernels.py")]
    assert checked(ROOT, len(files)) == []


def test_pyright_accepts_the_kernels_of_the_readme(tmp_path: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", README.read_text("utf8"), re.M | re.S)
    file = tmp_path / "readme.py"
    file.write_text("\n".join(blocks))
    assert len(blocks) == 2
    assert pyright(file, folder=tmp_path) == []


def test_pyright_accepts_the_factories_of_the_examples(tmp_path: Path) -> None:
    files = [f for f in sorted((ROOT / "examples").glob("*.py")) if f.stem != "vector_add"]
    for f in files:
        (tmp_path / f.name).write_text(f.read_text("utf8"))
    assert pyright(*(tmp_path / f.name for f in files), folder=tmp_path) == []


def test_pyright_refuses_a_wrong_call(tmp_path: Path) -> None:
    file = tmp_path / "wrong.py"
    lines = (
        "import tile_core.language as T",
        "def f():",
        "    T.copy(1)",
        "    T.alloc_sharde((1,), 'int32')",
        "    T.gemm(1, 2, 3, tranpose_A=True)",
    )
    file.write_text("\n".join(lines) + "\n")
    found = "\n".join(pyright(file, folder=tmp_path))
    assert ":3:" in found
    assert ":5:" in found


@pytest.mark.parametrize("name", CALLABLE)
def test_every_name_has_a_docstring_and_a_signature(name: str) -> None:
    value = getattr(T, name)
    assert len(inspect.getdoc(value) or "") > 6
    if not inspect.isfunction(value):
        return
    for p in inspect.signature(value).parameters.values():
        assert p.annotation is not inspect.Parameter.empty, p.name


def test_code_of_the_readme_runs() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", README.read_text("utf8"), re.M | re.S)
    source = "\n".join(blocks)
    file = ROOT / "README.md"
    import linecache

    linecache.cache[str(file) + ":code"] = (len(source), None, source.splitlines(True), str(file) + ":code")
    exec(compile(source, str(file) + ":code", "exec"), {"__name__": "readme"})
