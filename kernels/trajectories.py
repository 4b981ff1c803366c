"""Matches of the calls of two trajectories."""

from __future__ import annotations

import numpy as np

from .jit import I64, Array, inner, kernel
from .matching import Pairs
from .spans import most_pairs


@inner
def same_call(one: int, other: int, similar: Array, n: int) -> bool:
    """Return whether a predicted call matches a reference call.

    Args:
        similar: codes of matching calls, predicted * n + reference, ascending; equal codes match
            without being listed.
    """
    if one == other:
        return True
    key = one * n + other
    at = np.searchsorted(similar, key)
    return bool(at < similar.size and similar[at] == key)


@kernel
def match_calls(
    first: int,
    last: int,
    starts: tuple[I64, I64],
    codes: tuple[I64, I64],
    similar: I64,
    n: int,
    out: Array,
) -> int:
    """Compare the trajectories of datums.

    Args:
        first: first datum.
        last: one past the last.
        starts: int64 [d + 1] twice, offsets of predicted and of reference calls.
        codes: int64 twice, calls in their order.
        similar: see :func:`same_call`.
        n: number of codes.
        out: int64 [d, 5], filled: whether all calls match in their order, whether the reference is
            a subsequence of the prediction, pairs of the largest one-to-one matching, predicted
            calls that match any reference call, reference calls that match any predicted call.
    """
    predicted, reference = codes
    for d in range(first, last):
        p0, r0 = starts[0][d], starts[1][d]
        n_p, n_r = starts[0][d + 1] - p0, starts[1][d + 1] - r0
        exact, place, k = n_p == n_r, 0, 0
        start, truth = np.zeros(n_p + 1, np.int64), np.empty(n_p * n_r, np.int32)
        reached = np.zeros(n_r, np.bool_)
        for i in range(n_p):
            along, next_place = False, place
            for j in range(n_r):
                if same_call(predicted[p0 + i], reference[r0 + j], similar, n):
                    truth[k] = j
                    k += 1
                    reached[j] = True
                    along = along or i == j
                    next_place += j == place
            exact, place, start[i + 1] = exact and along, next_place, k
            out[d, 3] += k > start[i]
        chosen = most_pairs(Pairs(start, truth[:k], np.empty(0)), n_r)
        out[d, 0], out[d, 1], out[d, 2] = exact, place == n_r, chosen.sum()
        out[d, 4] = reached.sum()
    return 0
