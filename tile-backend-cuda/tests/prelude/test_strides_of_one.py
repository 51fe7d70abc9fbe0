"""Strides along dimensions of extent 1 mean nothing: numpy leaves any there, and a tensor map must not take them over."""

from __future__ import annotations

import numpy as np

from tile_backend_cuda.prelude.tensor_map import TensorMap


def test_a_dense_array_has_the_strides_of_its_shape():
    turned = np.ascontiguousarray(np.zeros((1, 1, 64, 1), np.float32).transpose(0, 3, 1, 2))
    assert turned.strides[1] == 4
    assert TensorMap(turned, (1, 1, 1, 64)).strides == (256, 256, 256, 4)


def test_others_keep_theirs():
    half = np.zeros((4, 64), np.float32)[:, :32]
    assert TensorMap(half, (4, 32)).strides == half.strides
