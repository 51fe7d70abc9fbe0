"""The text and the picture of graphs."""

from __future__ import annotations

from xml.etree import ElementTree

import handmade as h
import pytest

from tile_core.graph import build
from tile_core.graph.draw import draw
from tile_core.graph.text import text

GEMM = """\
graph gemm
  launch0: grid (8, 8), 128 threads
    fill0: acc = 0.0
    for0: pipelined k from 0, 32 times, 3 stages
      copy0: As = A[by * 128 : +128, k * 32 : +32]
      copy1: Bs = B[k * 32 : +32, bx * 128 : +128]
      gemm0: acc += As @ Bs
    copy2: C[by * 128 : +128, bx * 128 : +128] = acc
edges
  copy0 -> gemm0  raw As (128, 32) float16
  copy1 -> gemm0  raw Bs (32, 128) float16
  fill0 -> gemm0  raw acc (128, 128) float32
  fill0 -> gemm0  waw acc (128, 128) float32
  copy0 -> copy0  waw As (128, 32) float16, carried
  gemm0 -> copy0  war As (128, 32) float16, carried
  copy1 -> copy1  waw Bs (32, 128) float16, carried
  gemm0 -> copy1  war Bs (32, 128) float16, carried
  gemm0 -> gemm0  raw acc (128, 128) float32, carried
  gemm0 -> gemm0  waw acc (128, 128) float32, carried
  gemm0 -> copy2  raw acc (128, 128) float32
"""


def test_text_of_gemm() -> None:
    assert text(build(h.gemm())) == GEMM


@pytest.mark.parametrize(
    "make", [h.attention, h.split_k, h.histogram, h.slice_fill, h.running_maximum, h.reduce48]
)
def test_picture_is_one_document(make) -> None:
    g = build(make())
    svg = draw(g, ("raw", "war", "waw"))
    root = ElementTree.fromstring(svg)
    words = "".join(root.itertext())
    assert root.tag.endswith("svg") and all(n.name in words for n in g.nodes)
    assert "http" not in svg.replace("http://www.w3.org/2000/svg", "")
    assert draw(g) == draw(build(make()))
