"""Rows of ``tile doctor`` for the ``cpu`` target."""

from __future__ import annotations

from importlib import metadata

from ..backend import Check, Finding

NEEDED = {"apache-tvm": "0.27", "apache-tvm-ffi": "0.1.14", "llvmlite": "0.50"}


def _packages() -> Finding:
    wrong = []
    for package, version in NEEDED.items():
        try:
            found = metadata.version(package)
        except metadata.PackageNotFoundError:
            wrong.append(f"{package} is missing")
            continue
        if not (found + ".").startswith(version + "."):
            wrong.append(f"{package} is {found}")
    if not wrong:
        return Finding("ok", ", ".join(f"{p} {metadata.version(p)}" for p in NEEDED))
    wanted = " ".join(f'"{p}=={v}.*"' for p, v in NEEDED.items())
    return Finding("error", "; ".join(wrong), f"pip install {wanted}")


def _processor() -> Finding:
    try:
        from .machine import host

        found = host()
    except Exception as e:
        return Finding("error", f"LLVM does not know this processor: {e}", "pip install llvmlite")
    level = "ok" if found.vector_bytes >= 32 else "warning"
    return Finding(
        level, f"{found.cpu}, vectors of {found.vector_bytes} bytes, {found.l2 >> 10} KiB of L2 per core"
    )


CHECKS = (Check("cpu packages", _packages), Check("cpu processor", _processor))
