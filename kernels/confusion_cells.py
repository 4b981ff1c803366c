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

from .jit import frozen, kernel
from .order import group_by_label

Array = np.ndarray[Any, Any]


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
    out_actual: Array,
    out_predicted: Array,
    out_iou: Array,
    out_score: Array,
    out_count: Array,
) -> None:
    """One of the two walks; see :func:`confusion_cells`."""
    n_groups, n_labels, n_ious, n_scores = tp.shape
    one = np.uint64(1)
    n = 0
    segment = 0
    for g in range(n_groups):
        for t in range(n_ious):
            for a in range(n_labels + 1):
                null = a == n_labels
                i = start[segment]
                stop = i if null else start[segment + 1]
                segment += not null
                p = -1  # the cell's predicted label; the next one that may hold something is found
                while p < n_labels:
                    # Next: the next predicted label met, before it the diagonal, at last null.
                    # Without an actual label every predicted label is looked at.
                    following = predicted[order[i]] if i < stop else n_labels
                    if null:
                        following = p + 1
                    elif p < a <= following and write:
                        following = a
                    p = following
                    if null and (p == n_labels or not write):
                        break
                    for s in range(n_scores):
                        if null:
                            row[s] = fp[g, p, t, s]
                        elif write and p == n_labels:
                            row[s] = fn[g, a, t, s]
                        elif write and p == a:
                            row[s] = tp[g, a, t, s]
                        else:
                            row[s] = 0
                    while i < stop and predicted[order[i]] == p:
                        r = order[i]
                        i += 1
                        for w in range(bits.shape[0]):
                            left = bits[w, r]
                            s = 64 * w
                            while left != 0:
                                row[s] += times[r] & -np.int64(left & one)
                                left >>= one
                                s += 1
                    if not write and p < n_labels:
                        for s in range(n_scores):
                            fp[g, p, t, s] -= row[s]
                            fn[g, a, t, s] -= row[s]
                    for s in range(n_scores):
                        if row[s] == 0:
                            continue
                        if write:
                            out_actual[n] = a
                            out_predicted[n] = p
                            out_iou[n] = ious[t]
                            out_score[n] = score_thresholds[s]
                            out_count[n] = row[s]
                        n += 1
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
            np.empty(n_scores, np.int64),
            write,
            end,
            *out,
        )
        n = sum(int(np.count_nonzero(table)) for table in (tp, fp, fn)) + int(end[-1])
    return end, out
