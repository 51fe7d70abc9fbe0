"""The test environment holds no GPU libraries: a plain `pip install torch` would bring gigabytes of them."""

from __future__ import annotations

from importlib.metadata import distributions

# compilers and disassemblers of device code that tests run without a device
NEEDED = {"nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12", "nvidia-cuda-cuobjdump", "nvidia-cuda-nvdisasm"}


def test_no_gpu_libraries():
    names = {d.metadata["Name"].lower() for d in distributions()}
    assert {n for n in names if n.startswith("nvidia-")} - NEEDED == set()
