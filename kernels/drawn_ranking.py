"""Areas under curves in many draws at once: the order of the scores is found once for all.

Scores of positives and of negatives stand in ascending order; one walk over both adds up the
weights of a whole block of draws, which lie side by side.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .draw_weights import draw_one, state_of_draws
from .jit import frozen, inner, kernel

Array = np.ndarray[Any, Any]


class Drawing(NamedTuple):
    """Where the weights of rows come from: of their datums, or made of the keys beside the rows.

    Attributes:
        seed: of the draws.
        first: the first draw.
        last: one past the last.
        weights: uint8 [n_datums, draws], or None.
        keys: uint64 [n], of every row, or None.
    """

    seed: int
    first: int
    last: int
    weights: Array | None
    keys: Array | None


Side = tuple[Array, Array]
"""Starts and stops of the segments of positives, or of negatives, int64 [s]."""


@inner
def _clear(sums: Array) -> None:
    for d in range(sums.size):
        sums[d] = 0.0


@inner
def _weights_of(
    i: int,
    datum: Array,
    weights: Array,
    keys: Any,
    seed: Any,
    first_word: int,
    words: Array,
    values: Array,
    first: Array,
    made: Array,
) -> Array:
    """Weights of a row in all draws: of its datum, or made of its key.

    Which it is, is known when the kernel is compiled: ``keys`` is None or an array.
    """
    if keys is None:
        return weights[datum[i]]
    draw_one(keys[i], seed, first_word, words, values, first, made)
    return made


@inner
def _gather(
    i: int,
    stop: int,
    at: float,
    score: Array,
    datum: Array,
    own: Array,
    weights: Array,
    keys: Any,
    seed: Any,
    first_word: int,
    words: Array,
    values: Array,
    first: Array,
    made: Array,
    out: Array,
) -> int:
    """Add the weights of the rows from ``i`` on that score ``at``; the first row behind them."""
    while i < stop and score[i] == at:
        w = _weights_of(i, datum, weights, keys, seed, first_word, words, values, first, made)
        if own.size:
            for d in range(out.size):
                out[d] += own[i] * w[d]
        else:
            for d in range(out.size):
                out[d] += w[d]
        i += 1
    return i


@kernel
def _won(
    p_start: Array,
    p_stop: Array,
    n_start: Array,
    n_stop: Array,
    score: Array,
    datum: Array,
    own: Array,
    weights: Array,
    keys: Any,
    seed: Any,
    first_word: int,
    words: Array,
    values: Array,
    first: Array,
    made: Array,
    here: Array,
    beside: Array,
    below: Array,
    won: Array,
) -> None:
    """See :func:`drawn_wins`."""
    for s in range(p_start.size):
        out = won[s]
        _clear(below)
        j = n_start[s]
        i = p_start[s]
        while i < p_stop[s]:
            at = score[i]
            while j < n_stop[s] and score[j] < at:
                w = _weights_of(
                    j, datum, weights, keys, seed, first_word, words, values, first, made
                )
                if own.size:
                    for d in range(below.size):
                        below[d] += own[j] * w[d]
                else:
                    for d in range(below.size):
                        below[d] += w[d]
                j += 1
            if j < n_stop[s] and score[j] == at:
                _clear(here)
                _clear(beside)
                i = _gather(
                    i, p_stop[s], at, score, datum, own, weights, keys,
                    seed, first_word, words, values, first, made, here,
                )  # fmt: skip
                j = _gather(
                    j, n_stop[s], at, score, datum, own, weights, keys,
                    seed, first_word, words, values, first, made, beside,
                )  # fmt: skip
                for d in range(out.size):
                    out[d] += here[d] * (below[d] + beside[d] / 2)
                    below[d] += beside[d]
            else:
                w = _weights_of(
                    i, datum, weights, keys, seed, first_word, words, values, first, made
                )
                if own.size:
                    for d in range(out.size):
                        out[d] += own[i] * w[d] * below[d]
                else:
                    for d in range(out.size):
                        out[d] += w[d] * below[d]
                i += 1


@kernel
def _precise(
    p_start: Array,
    p_stop: Array,
    n_start: Array,
    n_stop: Array,
    score: Array,
    datum: Array,
    own: Array,
    weights: Array,
    keys: Any,
    seed: Any,
    first_word: int,
    words: Array,
    values: Array,
    first: Array,
    made: Array,
    here: Array,
    right: Array,
    wrong: Array,
    total: Array,
) -> None:
    """See :func:`drawn_precisions`."""
    for s in range(p_start.size):
        out = total[s]
        _clear(right)
        _clear(wrong)
        i, j = p_stop[s] - 1, n_stop[s] - 1
        while i >= p_start[s]:
            at = score[i]
            _clear(here)
            while j >= n_start[s] and score[j] >= at:
                w = _weights_of(
                    j, datum, weights, keys, seed, first_word, words, values, first, made
                )
                for d in range(wrong.size):
                    wrong[d] += (own[j] if own.size else 1.0) * w[d]
                j -= 1
            while i >= p_start[s] and score[i] == at:
                w = _weights_of(
                    i, datum, weights, keys, seed, first_word, words, values, first, made
                )
                for d in range(here.size):
                    here[d] += (own[i] if own.size else 1.0) * w[d]
                i -= 1
            for d in range(out.size):
                right[d] += here[d]
                if here[d] > 0:
                    out[d] += here[d] * (right[d] / (right[d] + wrong[d]))


Rows = tuple[Array, Array, Array | None]
"""Score float64 [n], datum int32 [n] and weight float64 [n] of each row, or None."""


def _inputs(positives: Side, negatives: Side, rows: Rows, drawing: Drawing) -> tuple[Any, ...]:
    score, datum, own = rows
    bounds = (frozen(bound, np.int64) for bound in (*positives, *negatives))
    beside = np.zeros(0) if own is None else own
    n_draws = drawing.last - drawing.first
    weights = np.zeros((0, n_draws), np.uint8) if drawing.weights is None else drawing.weights
    keys = None if drawing.keys is None else frozen(drawing.keys, np.uint64)
    return (
        *bounds,
        frozen(score, np.float64),
        frozen(datum, np.int32),
        frozen(beside, np.float64),
        frozen(weights, np.uint8),
        keys,
        *state_of_draws(drawing.seed, drawing.first, drawing.last),
        np.empty(n_draws, np.uint8),
        *np.zeros((3, n_draws)),
    )


def drawn_wins(positives: Side, negatives: Side, rows: Rows, drawing: Drawing) -> Array:
    """Weight of the pairs that positives win, ties counting half, in every draw.

    Args:
        positives: segments of the rows of positives, scores ascending within each.
        negatives: those of negatives, likewise.
        rows: of all segments.
        drawing: where weights come from.

    Returns:
        float64 [s, b].
    """
    out = np.zeros((positives[0].size, drawing.last - drawing.first))
    _won(*_inputs(positives, negatives, rows, drawing), out)
    return out


def drawn_precisions(positives: Side, negatives: Side, rows: Rows, drawing: Drawing) -> Array:
    """Weights of positives times the precision down to their score, added up, in every draw.

    Args:
        positives: as :func:`drawn_wins` has them.
        negatives: likewise.
        rows: likewise.
        drawing: likewise.

    Returns:
        float64 [s, b].
    """
    out = np.zeros((positives[0].size, drawing.last - drawing.first))
    _precise(*_inputs(positives, negatives, rows, drawing), out)
    return out
