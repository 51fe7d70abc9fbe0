"""A backend whose metadata asks for an earlier tile-core. It must not even be imported."""

from __future__ import annotations

raise RuntimeError("imported all the same")
