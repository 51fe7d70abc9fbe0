"""The processor that code is made for: its LLVM name, features and vector registers."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

SSE = ("sse2", "sse4.1", "sse4.2", "ssse3", "popcnt", "cx16")
AVX = ("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe")
AVX512 = ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")


@dataclass(frozen=True)
class Machine:
    """``vector_bytes`` and ``registers``: width and number of vector registers. ``l2``: bytes of one core's cache."""

    arch: str
    triple: str
    cpu: str
    features: frozenset[str]
    l2: int = 1 << 20

    @property
    def vector_bytes(self) -> int:
        if "avx512f" in self.features:
            return 64
        return 32 if "avx2" in self.features else 16

    @property
    def registers(self) -> int:
        return 32 if "avx512f" in self.features or self.arch.startswith(("aarch64", "arm64")) else 16

    @property
    def feature_text(self) -> str:
        """Features as LLVM's attribute wants them."""
        return ",".join(f"+{f}" for f in sorted(self.features))


# Feature sets of the x86-64 psABI levels, and Armv8's baseline
PORTABLE = {
    m.arch: m
    for m in (
        Machine("x86_64_v2", "x86_64-unknown-linux-gnu", "x86-64-v2", frozenset(SSE)),
        Machine("x86_64_v3", "x86_64-unknown-linux-gnu", "x86-64-v3", frozenset((*SSE, *AVX))),
        Machine("x86_64_v4", "x86_64-unknown-linux-gnu", "x86-64-v4", frozenset((*SSE, *AVX, *AVX512))),
        Machine("aarch64_v8", "aarch64-unknown-linux-gnu", "generic", frozenset(("neon", "fp-armv8"))),
    )
}

ARCH_NAMES = {"amd64": "x86_64", "arm64": "aarch64"}


def host_arch() -> str:
    name = platform.machine().lower()
    return ARCH_NAMES.get(name, name)


@lru_cache(maxsize=1)
def host() -> Machine:
    """The processor this process runs on, as LLVM sees it."""
    import llvmlite.binding as llvm

    features = frozenset(f for f, on in llvm.get_host_cpu_features().items() if on)
    return Machine(host_arch(), llvm.get_process_triple(), llvm.get_host_cpu_name(), features, _l2_bytes())


def machine(arch: str) -> Machine:
    """The machine that an architecture of the ``cpu`` backend names."""
    return PORTABLE.get(arch) or host()


def _l2_bytes() -> int:
    try:
        text = Path("/sys/devices/system/cpu/cpu0/cache/index2/size").read_text().strip()
        return int(text.removesuffix("K")) * 1024
    except (OSError, ValueError):
        return 1 << 20
