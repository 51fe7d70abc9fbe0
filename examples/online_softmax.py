"""The softmax that attention kernels carry along while they walk over the keys: a maximum and a sum for each row."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import tile_core.language as T

LOG2E = math.log2(math.e)


@dataclass(frozen=True)
class Running:
    """What a block knows of its rows so far; the maxima are those of the scores before they are scaled, the shifts after."""

    top: Any
    before: Any
    shift: Any
    rescale: Any
    row_sum: Any
    total: Any


@T.macro
def running(rows):
    """The tiles of a running softmax, still to be started."""
    top = T.alloc_fragment((rows,), "float32")
    before = T.alloc_fragment((rows,), "float32")
    shift = T.alloc_fragment((rows,), "float32")
    rescale = T.alloc_fragment((rows,), "float32")
    row_sum = T.alloc_fragment((rows,), "float32")
    total = T.alloc_fragment((rows,), "float32")
    return Running(top, before, shift, rescale, row_sum, total)


@T.macro
def start(state):
    T.fill(state.total, 0)
    T.fill(state.top, -T.infinity("float32"))


@T.macro
def fold(state, scores, weights, acc, scale, slack=0):
    """Turn scores into weights relative to the maximum so far, and bring sum and accumulator to the new maximum.

    ``scale`` includes the factor that makes exp2 of exp. Hidden scores are -inf. With ``slack`` a maximum stays as it is until
    weights would be larger than ``2 ** slack``: what was summed up then seldom has to be multiplied.
    """
    rows, columns = scores.shape
    T.copy(state.top, state.before)
    T.reduce_max(scores, state.top, dim=1, clear=False)
    if slack:
        for i in T.Parallel(rows):
            grown = (state.top[i] - state.before[i]) * scale > slack
            state.top[i] = T.if_then_else(grown, state.top[i], state.before[i])
    for i in T.Parallel(rows):
        # a row that has seen no key yet is shifted by 0: exp2(-inf - -inf) would be NaN
        state.shift[i] = T.if_then_else(state.top[i] == -T.infinity("float32"), 0, state.top[i] * scale)
        factor = T.__exp2(state.before[i] * scale - state.shift[i])
        state.rescale[i] = T.if_then_else(state.top[i] == state.before[i], 1, factor) if slack else factor
    for i, j in T.Parallel(rows, columns):
        scores[i, j] = T.__exp2(scores[i, j] * scale - state.shift[i])
    T.reduce_sum(scores, state.row_sum, dim=1)
    for i in T.Parallel(rows):
        state.total[i] = state.total[i] * state.rescale[i] + state.row_sum[i]
    T.copy(scores, weights)
    for i, j in T.Parallel(rows, acc.shape[1]):
        acc[i, j] = acc[i, j] * state.rescale[i]


@T.macro
def finish(state, acc, lse, scale):
    """Divide by the sums; ``lse``, a tile, gets the logarithm (base e) of each row's sum. A row without keys: 0 and -inf."""
    rows, columns = acc.shape
    for i in T.Parallel(rows):
        state.rescale[i] = T.if_then_else(state.total[i] > 0, 1 / state.total[i], 0)
    for i, j in T.Parallel(rows, columns):
        acc[i, j] = acc[i, j] * state.rescale[i]
    for i in T.Parallel(rows):
        lse[i] = T.if_then_else(
            state.total[i] > 0,
            (T.log2(state.total[i]) + state.top[i] * scale) / LOG2E,
            -T.infinity("float32"),
        )
