"""Strides along dimensions of extent 1 mean nothing: numpy leaves any there, and a tensor map must not take them over."""

from __future__ import annotations

import numpy as np

from tile_backend_cuda.prelude.emulate import row_major
from tile_backend_cuda.prelude.tensor_map import TensorMap


def test_a_dense_array_gets_the_strides_of_its_shape():
    turned = np.ascontiguousarray(np.arange(64, dtype=np.float32).reshape(1, 1, 64, 1).transpose(0, 3, 1, 2))
    assert turned.strides[1] == 4
    dense = row_major(turned)
    assert dense.strides == (256, 256, 256, 4)
    assert np.shares_memory(dense, turned)
    assert (dense == turned).all()
    TensorMap(dense, (1, 1, 1, 64))


def test_others_keep_theirs():
    columns = np.zeros((4, 8), np.float32)[:, ::2]
    assert row_major(columns) is columns
    assert row_major(np.zeros((0, 3), np.float32)).shape == (0, 3)
