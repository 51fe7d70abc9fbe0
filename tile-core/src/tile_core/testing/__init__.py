"""The conformance kit: what a backend must do to be one, level by level, and the pytest plugin that runs it.

Opt in with ``pytest -p tile_core.testing.plugin``. Nothing here is imported by a program that runs kernels.
"""

from __future__ import annotations

SUITE = "1.0"  # stamped into the rows of devices.toml; raised when a test is added, dropped or made stricter
