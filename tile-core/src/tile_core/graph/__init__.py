"""The fused tile-level dataflow graph. Takes a tile program, gives nodes, edges and regions, and what follows from them."""

from __future__ import annotations

from .build import build
from .nodes import Edge, Graph, Loop, Node

__all__ = ["Edge", "Graph", "Loop", "Node", "build"]
