"""Cells of confusion matrices, counted and written in the order their frame stands in.

Meetings of one IoU threshold, ground-truth label and predicted label stand together, so a row of
counters, one a score threshold, is filled and emptied for each such cell; no key is sorted or
hashed. A first walk takes the meetings out of the false positives and negatives and counts the
cells, a second writes them: group, IoU threshold, actual, predicted, score threshold, with the
true positives at their place and the unmatched (null, the code past the last label) at the end.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import frozen, inner, kernel
from .order import group_by_label

Array = np.ndarray[Any, Any]


@inner
def _put(
    n: int,
    codes: tuple[int, int, int],
    table: Array,
    at: tuple[int, int, int],
    write: bool,
    out: tuple[Array, Array, Array, Array, Array],
    ious: Array,
    score_thresholds: Array,
) -> int:
    """Write a cell's counts that are not 0, or only count them; returns the next free row."""
    iou, actual, predicted = codes
    g, label, t = at
    for s in range(score_thresholds.size):
        count = table[g, label, t, s]
        if count == 0:
            continue
        if write:
            out[0][n] = actual
            out[1][n] = predicted
            out[2][n] = ious[iou]
            out[3][n] = score_thresholds[s]
            out[4][n] = count
        n += 1
    return n


@kernel
def _cells(
    start: Array,
    order: Array,
    predicted: Array,
    bits: Array,
    times: Array,
    ious: Array,
    score_thresholds: Array,
    tp: Array,
    fp: Array,
    fn: Array,
    row: Array,
    write: bool,
    end: Array,
    out: tuple[Array, Array, Array, Array, Array],
) -> None:
    """One of the two walks; see :func:`confusion_cells`."""
    n_groups, n_labels, n_ious, n_scores = tp.shape
    one = np.uint64(1)
    n = 0
    segment = 0
    for g in range(n_groups):
        for t in range(n_ious):
            for a in range(n_labels):
                i = start[segment]
                stop = start[segment + 1]
                segment += 1
                diagonal = write
                while i < stop:
                    p = predicted[order[i]]
                    for s in range(n_scores):
                        row[0, 0, 0, s] = 0
                    while i < stop and predicted[order[i]] == p:
                        r = order[i]
                        for w in range(bits.shape[0]):
                            left = bits[w, r]
                            s = 64 * w
                            while left != 0:
                                row[0, 0, 0, s] += times[r] & -np.int64(left & one)
                                left >>= one
                                s += 1
                        i += 1
                    if not write:
                        for s in range(n_scores):
                            fp[g, p, t, s] -= row[0, 0, 0, s]
                            fn[g, a, t, s] -= row[0, 0, 0, s]
                    if diagonal and p > a:
                        diagonal = False
                        n = _put(n, (t, a, a), tp, (g, a, t), write, out, ious, score_thresholds)
                    n = _put(n, (t, a, p), row, (0, 0, 0), write, out, ious, score_thresholds)
                if diagonal:
                    n = _put(n, (t, a, a), tp, (g, a, t), write, out, ious, score_thresholds)
                if write:
                    n = _put(n, (t, a, n_labels), fn, (g, a, t), write, out, ious, score_thresholds)
            if write:
                for p in range(n_labels):
                    n = _put(n, (t, n_labels, p), fp, (g, p, t), write, out, ious, score_thresholds)
        end[g] = n


def confusion_cells(
    meetings: tuple[Array, Array, Array, Array],
    group: Array,
    times: Array,
    ious: Array,
    score_thresholds: Array,
    counts: tuple[Array, Array, Array],
) -> tuple[Array, tuple[Array, Array, Array, Array, Array]]:
    """Cells with a count, by group, IoU threshold, actual, predicted and score threshold.

    Args:
        meetings: actual int32 [n], predicted int32 [n], index of the IoU threshold int32 [n], bits
            uint64 [words, n] of the score thresholds at which they met.
        group: int32 [n], group of each meeting, -1 for none.
        times: int64 [n], how often each counts.
        ious: float64 [t], as they are to be written.
        score_thresholds: float64 [k], likewise.
        counts: true positives, false positives and false negatives by label, before meetings are
            taken out, int64 [groups, labels, t, k] each.

    Returns:
        int64 [groups], one past each group's last cell; and of each cell actual and predicted
        uint32 (one past the last label for unmatched), IoU threshold and score threshold float64,
        count int64.
    """
    actual, predicted, threshold, bits = meetings
    tp, fp, fn = (np.array(table, np.int64, order="C") for table in counts)
    n_groups, n_labels, n_ious, n_scores = tp.shape
    n_segments = n_groups * n_ious * n_labels
    segment = (group * n_ious + threshold) * n_labels + actual
    segment[group < 0] = n_segments
    start, position = group_by_label(predicted, segment, n_labels, n_segments + 1)
    order = np.empty(position.size, np.int32)
    order[position] = np.arange(position.size, dtype=np.int32)
    end = np.empty(n_groups, np.int64)
    n = 0
    for write in (False, True):
        out = (
            np.empty(n, np.uint32),
            np.empty(n, np.uint32),
            np.empty(n),
            np.empty(n),
            np.empty(n, np.int64),
        )
        _cells(
            frozen(start, np.int64),
            frozen(order, np.int32),
            frozen(predicted, np.int32),
            frozen(bits, np.uint64),
            frozen(times, np.int64),
            frozen(ious, np.float64),
            frozen(score_thresholds, np.float64),
            tp,
            fp,
            fn,
            np.empty((1, 1, 1, n_scores), np.int64),
            write,
            end,
            out,
        )
        n = sum(int(np.count_nonzero(table)) for table in (tp, fp, fn)) + int(end[-1])
    return end, out
