"""Scored labels in ascending order, found once for a tally and shared by all of its views.

Which rows a view takes, and what they weigh, does not change their order: slices and bootstrap
draws of weighted rows pick from this one, and nothing is sorted again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np

from ..kernels.label_matching import N_OUTCOMES
from ..kernels.order import rank_by_score
from ..kernels.partition import partition

Array = np.ndarray[Any, Any]


class Ascending(msgspec.Struct, frozen=True):
    """Rows by label, then outcome, then score, of equal scores in input order.

    Attributes:
        start: int64 [labels * outcomes + 1], CSR offsets.
        score: float64 [n].
        outcome: uint8 [n].
        label: int32 [n], label codes; None where there is one label.
        unit: int32 or int64 [n], unit of each row.
    """

    start: Array
    score: Array
    outcome: Array
    label: Array | None
    unit: Array


def ascending(
    parts: tuple[Array, ...],
    outcome: Array,
    label: Array | None,
    unit: Array | None,
    n_labels: int,
    over: Callable[[Array, Callable[[int, int], None]], Any],
) -> Ascending:
    """Order scored rows.

    Args:
        parts: float64 arrays of n scores together, in row order.
        outcome: uint8 [n].
        label: int32 [n], label codes; None where there is one label.
        unit: int32 [n], unit of each row; None where row i is unit i.
        n_labels: number of labels, 1 without codes.
        over: calls a function on ranges of segments, perhaps side by side.
    """
    shape = (1, n_labels, N_OUTCOMES)
    start, score, row = partition(parts, outcome, label, None, None, shape, want_rows=True)

    order = np.empty(score.size, np.int32)
    np.negative(score, out=score)  # what descends by these ascends by the scores, ties by row

    def sort(first: int, last: int) -> None:
        a, b = start[first], start[last]
        rank_by_score(score, start, first, last, order)
        score[a:b] = -score[order[a:b]]
        row[a:b] = row[order[a:b]]

    over(start, sort)
    segment = np.repeat(np.arange(start.size - 1, dtype=np.int32), np.diff(start))
    return Ascending(
        start,
        score,
        (segment % N_OUTCOMES).astype(np.uint8),
        None if label is None else segment // N_OUTCOMES,
        row if unit is None else unit[row],
    )
