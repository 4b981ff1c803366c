"""Outcomes of every label at every threshold, counted by kind, with the first datums of each.

Valor's detailed precision-recall curve: a false positive on a datum that has a truth of the key is
a misclassification, on one without a hallucination; a false negative is a misclassification where
some label of the key reaches the threshold, else there is no prediction (Valor metrics document).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import frozen, inner, kernel

Array = np.ndarray[Any, Any]

TP, FP_MISCLASSIFIED, FP_STRAY, FN_MISCLASSIFIED, FN_MISSED, TN = range(6)
N_CELLS = 6


@inner
def _add(
    place: int, low: int, high: int, datum: int, counts: Array, full: Array, n: Array, shown: Array
) -> None:
    """One datum into one kind of one label, at the thresholds [low, high)."""
    if low >= high:
        return
    counts[place, low] += 1
    counts[place, high] -= 1
    n_scores = counts.shape[1] - 1
    if shown.shape[2] == 0 or full[place] == n_scores:
        return
    for t in range(low, high):
        at = n[place, t]
        if at < shown.shape[2]:
            shown[place, t, at] = datum
            n[place, t] = at + 1
            if at + 1 == shown.shape[2]:
                full[place] += 1


@kernel
def _cells(
    place_start: Array,
    place_datum: Array,
    place_unit: Array,
    key: Array,
    group: Array,
    row_start: Array,
    row_unit: Array,
    row_level: Array,
    truth_start: Array,
    truth_unit: Array,
    best: Array,
    judged: Array,
    level: Array,
    true: Array,
    present: Array,
    counts: Array,
    full: Array,
    n: Array,
    shown: Array,
    absent_too: bool,
) -> None:
    """Every label against every datum of its key, in datum order."""
    n_labels = key.size
    n_scores = counts.shape[1] - 1
    for label in range(n_labels):
        rows = row_start[label], row_start[label + 1]
        truths = truth_start[label], truth_start[label + 1]
        if rows[0] == rows[1] and truths[0] == truths[1] and not absent_too:
            continue
        for i in range(rows[0], rows[1]):
            level[row_unit[i]] = row_level[i]
        for i in range(truths[0], truths[1]):
            true[truth_unit[i]] = 1
        for p in range(place_start[key[label]], place_start[key[label] + 1]):
            d, u = place_datum[p], place_unit[p]
            g = group[d] if group.size else 0
            if g < 0:
                continue
            reached, some, is_true, is_judged = -1, 0, False, False
            if u >= 0:
                reached, some = level[u], best[u]
                is_true, is_judged = true[u] == 1, judged[u] == 1
            if reached >= 0 or is_true:
                present[g, label] = True
            reached = max(reached, 0)
            at = (g * n_labels + label) * 6
            if is_true:
                _add(at + 0, 0, reached, d, counts, full, n, shown)
                _add(at + 3, reached, some, d, counts, full, n, shown)
                _add(at + 4, max(reached, some), n_scores, d, counts, full, n, shown)
            else:
                _add(at + (1 if is_judged else 2), 0, reached, d, counts, full, n, shown)
                _add(at + 5, reached, n_scores, d, counts, full, n, shown)
        for i in range(rows[0], rows[1]):
            level[row_unit[i]] = -1
        for i in range(truths[0], truths[1]):
            true[truth_unit[i]] = 0


def detailed_cells(
    places: tuple[Array, Array, Array],
    key: Array,
    group: Array | None,
    rows: tuple[Array, Array, Array],
    truths: tuple[Array, Array],
    judged: Array,
    n_scores: int,
    n_groups: int,
    n_shown: int,
    *,
    absent_too: bool = False,
) -> tuple[Array, Array, Array]:
    """Count every label's datums by group, threshold and kind.

    Args:
        places: start int64 [keys + 1], CSR offsets by label key; datum int32 [m], ascending within
            a key; unit int32 [m] of that datum and key, -1 where it has none.
        key: int32 [l], label key of each label.
        group: int32 [n_datums], group of each datum, -1 for none; None for one group of all.
        rows: scored labels by label: start int64 [l + 1]; unit int32 [n]; level int32 [n], how
            many thresholds the score reaches.
        truths: true labels by label: start int64 [l + 1]; unit int32 [n].
        judged: bool [u], units that have a truth.
        n_scores: number of thresholds.
        n_groups: number of groups.
        n_shown: datums to keep of each cell.
        absent_too: whether datums are counted for labels, too, that are neither true nor listed
            here, as they may be so among other datums; else these have zeros.

    Returns:
        present, bool [group, label], labels that are true or listed there; counts, int64 [group,
        label, kind, threshold], kinds in the order of the constants above; the first datums of
        each, int32 [group, label, kind, threshold, n_shown], -1 where there are fewer.
    """
    n_units = judged.size
    best = np.zeros(n_units, np.int32)
    np.maximum.at(best, rows[1], rows[2].astype(np.int32))
    shape = (n_groups, key.size, N_CELLS)
    flat = n_groups * key.size * N_CELLS
    present = np.zeros((n_groups, key.size), np.bool_)
    counts = np.zeros((flat, n_scores + 1), np.int64)
    shown = np.full((flat, n_scores, n_shown), -1, np.int32)
    _cells(
        frozen(places[0], np.int64),
        frozen(places[1], np.int32),
        frozen(places[2], np.int32),
        frozen(key, np.int32),
        frozen(np.zeros(0) if group is None else group, np.int32),
        frozen(rows[0], np.int64),
        frozen(rows[1], np.int32),
        frozen(rows[2], np.int32),
        frozen(truths[0], np.int64),
        frozen(truths[1], np.int32),
        frozen(best, np.int32),
        frozen(judged, np.uint8),
        np.full(n_units, -1, np.int32),
        np.zeros(n_units, np.uint8),
        present,
        counts,
        np.zeros(flat, np.int32),
        np.zeros((flat, n_scores), np.int32),
        shown,
        absent_too,
    )
    summed = np.cumsum(counts[:, :-1], axis=1).reshape(*shape, n_scores)
    return present, summed, shown.reshape(*shape, n_scores, n_shown)
