"""Scored labels compared with true labels: outcomes, hard predictions and their counts.

Arguments of these names are the same everywhere:

    unit: int32 [n], unit (one datum under one label key) of each predicted row.
    label: int32 [n], its label.
    score: float64 [n].
    truth: int32 [u], true label of each unit, -1 for none.
    hard: int32 [u], predicted label of each unit, -1 for none; empty if no unit has one.
    datum: int32 [u], datum of each unit; None if unit u is datum u.
    group: int32 [n_datums], group of each datum, -1 for none; None for one group of all.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .jit import F64, I32, I64, U8, Array, MaybeI32, MaybeI64, inner, kernel
from .sums import ExactSums, add_bits

# Outcomes of classifications. The hard prediction of a unit is its label of the highest score, the
# first row on ties (scikit-learn's ``argmax``, Valor's smallest prediction id).

OTHER = 0
HIT = 1
STRAY = 2
N_OUTCOMES = 3


@kernel
def _outcomes(
    rows: tuple[I32, I32, F64], truth_start: MaybeI64, truth: I32, out: tuple[Array, Array, Array]
) -> None:
    """Outcome of every row, and the best row's label of every unit."""
    unit, label, score = rows
    outcome, hard, hard_score = out
    for i in range(label.size):
        u = unit[i]
        if truth_start.size:
            low, high = truth_start[u], truth_start[u + 1]
            kind = OTHER  # of several labels, none being true is an answer as well
            for k in range(low, high):
                if truth[k] == label[i]:
                    kind = HIT
        else:
            t = truth[u]
            kind = HIT if t == label[i] else (STRAY if t < 0 else OTHER)
        outcome[i] = kind
        if hard.size == 0:
            continue
        if hard[u] < 0 or score[i] > hard_score[u]:
            hard[u] = label[i]
            hard_score[u] = score[i]


def match_labels(
    unit: Array,
    label: Array,
    score: Array,
    truth: Array,
    truth_start: Array | None,
    *,
    want_hard: bool = True,
) -> tuple[Array, Array, Array]:
    """Outcome of each predicted label, and each unit's hard prediction.

    Args:
        truth: with ``truth_start`` int32 [m].
        truth_start: int64 [u + 1], CSR offsets of each unit's true labels, or None.
        want_hard: whether to find hard predictions; their arrays are empty otherwise.

    Returns:
        outcome uint8 [n]: 1 if the label is true, 0 if the unit has others (or, with
        ``truth_start``, none), 2 if it has none; hard prediction int32 [u], -1 without any row; its
        score float64 [u], NaN without any row.
    """
    n_units = truth.size if truth_start is None else truth_start.size - 1
    outcome = np.empty(label.size, np.uint8)
    hard = np.full(n_units if want_hard else 0, -1, np.int32)
    hard_score = np.full(hard.size, np.nan)
    _outcomes((unit, label, score), truth_start, truth, (outcome, hard, hard_score))
    return outcome, hard, hard_score


@kernel
def _truth_ranks(
    rows: tuple[I32, I32, F64, U8], first_wins: bool, out: tuple[Array, Array, Array, Array, Array]
) -> None:
    unit, label, score, outcome = rows
    at, true_score, rank, squared, lost = out
    for i in range(label.size):
        u = unit[i]
        if outcome[i] == 1:
            true_score[u] = score[i]
            at[u] = i
        value = 1.0 - score[i] if outcome[i] == 1 else score[i]
        # Compensated summation (Knuth 1969), so that the order of rows does not matter.
        square = value * value
        total = squared[u] + square
        gained = total - squared[u]
        lost[u] += (squared[u] - (total - gained)) + (square - gained)
        squared[u] = total
    for i in range(label.size):
        u = unit[i]
        if at[u] < 0 or i == at[u]:
            continue
        ahead = i < at[u] if first_wins else label[i] > label[at[u]]
        if score[i] > true_score[u] or (score[i] == true_score[u] and ahead):
            rank[u] += 1


def true_label_facts(
    unit: Array, label: Array, score: Array, outcome: Array, n_units: int, *, first_wins: bool
) -> tuple[Array, Array, Array]:
    """Inputs of top-k accuracy, log loss and the Brier score, per unit.

    Args:
        outcome: uint8 [n], 1 if the label is the unit's true one.
        n_units: number of units; each has at most one true label.
        first_wins: of tied scores the first row ranks higher; otherwise the larger label code, as
            in scikit-learn's ``top_k_accuracy_score``.

    Returns:
        score of the true label float64 [u], NaN if it is not listed; its rank from 0, int32 [u],
        undefined in that case; sum over listed labels of (score - truth)^2, float64 [u].
    """
    true_score = np.full(n_units, np.nan)
    rank = np.zeros(n_units, np.int32)
    squared, lost = np.zeros((2, n_units))
    at = np.full(n_units, -1, np.int64)
    out = at, true_score, rank, squared, lost
    _truth_ranks((unit, label, score, outcome), first_wins, out)
    return true_score, rank, squared + lost


# Counts of hard predictions by group and label: true positives and both marginals. Precision,
# recall, F, accuracy, Matthews' correlation and Cohen's kappa follow from these.


@kernel
def _weigh(
    truth: I32,
    hard: I32,
    datum: MaybeI32,
    group: MaybeI32,
    bits: Array,
    n_labels: int,
    first: int,
    onto: tuple[Array, Array, Array, Array],
) -> None:
    """Add the weight of every unit, exactly, to the sums of its group."""
    right, predicted, stray, actual = onto
    for u in range(truth.size):
        g = 0
        if group.size:
            g = group[datum[u] if datum.size else u]
            if g < 0:
                continue
        t = truth[u]
        h = hard[u] if hard.size else -1
        if t >= 0:
            add_bits(actual, g * n_labels + t, first, bits[u])
            if h >= 0:
                add_bits(predicted, g * n_labels + h, first, bits[u])
                if h == t:
                    add_bits(right, g * n_labels + t, first, bits[u])
        elif h >= 0:
            add_bits(stray, g * n_labels + h, first, bits[u])


@kernel
def count_hard(
    truth: I32, hard: I32, datum: MaybeI32, group: MaybeI32, onto: tuple[Array, Array, Array, Array]
) -> None:
    """Add units to their counts by group and label.

    Args:
        onto: float64 [g, l] each, whole numbers below 2^53, added to; in the order of
            :class:`HardWeights`.
    """
    right, predicted, stray, actual = onto
    for u in range(truth.size):
        g = 0
        if group.size:
            g = group[datum[u] if datum.size else u]
            if g < 0:
                continue
        t = truth[u]
        h = hard[u] if hard.size else -1
        if t >= 0:
            actual[g, t] += 1.0
            if h >= 0:
                predicted[g, h] += 1.0
                if h == t:
                    right[g, t] += 1.0
        elif h >= 0:
            stray[g, h] += 1.0


class HardWeights(NamedTuple):
    """Exact sums of the weights of units by group and label, cells of [g, l] in C order."""

    right: ExactSums  # truth and prediction agree
    predicted: ExactSums  # predicted on units that have a truth
    stray: ExactSums  # predicted on units that have none
    actual: ExactSums  # truths


def weigh_hard(
    truth: Array,
    hard: Array,
    datum: Array | None,
    group: Array | None,
    weight: Array,
    onto: HardWeights,
    n_labels: int,
) -> None:
    """Add the weights of units to their sums by group and label.

    Args:
        weight: float64 [u], finite.
        onto: added to.
    """
    for one in onto:
        bits = one.reserve(weight)
    if not onto.actual.chunks.shape[1]:
        return  # all weights are 0
    chunks: Any = tuple(one.chunks for one in onto)
    _weigh(truth, hard, datum, group, bits, n_labels, onto.actual.first, chunks)
    for one in onto:
        one.carry()


# Outcomes of every label at every threshold, counted by kind, with the first datums of each:
# Valor's detailed precision-recall curve. A false positive is a misclassification if the datum has
# a truth of the key, otherwise a hallucination; a false negative is a misclassification if some
# label of the key reaches the threshold, otherwise a missing prediction (Valor metrics document).

TP, FP_MISCLASSIFIED, FP_STRAY, FN_MISCLASSIFIED, FN_MISSED, TN = range(6)
N_CELLS = 6


@inner
def _add(
    place: int, low: int, high: int, datum: int, counts: Array, full: Array, n: Array, first: Array
) -> None:
    """Add one datum to one kind of one label, at the thresholds [low, high)."""
    if low >= high:
        return
    counts[place, low] += 1
    counts[place, high] -= 1
    n_scores = counts.shape[1] - 1
    if first.shape[2] == 0 or full[place] == n_scores:
        return
    for t in range(low, high):
        at = n[place, t]
        if at < first.shape[2]:
            first[place, t, at] = datum
            n[place, t] = at + 1
            if at + 1 == first.shape[2]:
                full[place] += 1


@kernel
def _cells(
    places: tuple[I64, I32, I32],
    key: I32,
    group: MaybeI32,
    scored: tuple[I64, I32, I32],
    true_labels: tuple[I64, I32],
    units: tuple[I32, U8],
    present: Array,
    counts: Array,
    first: Array,
    absent_too: bool,
) -> None:
    """Count every label against every datum of its key, in datum order."""
    place_start, place_datum, place_unit = places
    row_start, row_unit, row_level = scored
    truth_start, truth_unit = true_labels
    best, judged = units
    n_labels = key.size
    n_scores = counts.shape[1] - 1
    level, true = np.full(best.size, -1, np.int32), np.zeros(best.size, np.uint8)
    full, n = np.zeros(len(counts), np.int32), np.zeros((len(counts), n_scores), np.int32)
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
                _add(at + 0, 0, reached, d, counts, full, n, first)
                _add(at + 3, reached, some, d, counts, full, n, first)
                _add(at + 4, max(reached, some), n_scores, d, counts, full, n, first)
            else:
                _add(at + (1 if is_judged else 2), 0, reached, d, counts, full, n, first)
                _add(at + 5, reached, n_scores, d, counts, full, n, first)
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
    n_first: int,
    *,
    absent_too: bool = False,
) -> tuple[Array, Array, Array]:
    """Count every label's datums by group, threshold and kind.

    Args:
        places: start int64 [keys + 1], CSR offsets by label key; datum int32 [m], ascending within
            a key; unit int32 [m] of that datum and key, -1 if it has none.
        key: int32 [l], label key of each label.
        rows: scored labels by label: start int64 [l + 1]; unit int32 [n]; level int32 [n], number
            of thresholds the score reaches.
        truths: true labels by label: start int64 [l + 1]; unit int32 [n].
        judged: bool [u], units that have a truth.
        n_scores: number of thresholds.
        n_first: datums to keep per cell.
        absent_too: also count datums for labels that are neither true nor listed here but may be
            among other datums; otherwise these have zeros.

    Returns:
        present, bool [group, label], labels that are true or listed there; counts, int64 [group,
        label, kind, threshold], kinds in the order of the constants above; the first datums of
        each, int32 [group, label, kind, threshold, n_shown], padded with -1.
    """
    best = np.zeros(judged.size, np.int32)
    np.maximum.at(best, rows[1], rows[2].astype(np.int32))
    shape = (n_groups, key.size, N_CELLS)
    flat = n_groups * key.size * N_CELLS
    present = np.zeros((n_groups, key.size), np.bool_)
    counts = np.zeros((flat, n_scores + 1), np.int64)
    first = np.full((flat, n_scores, n_first), -1, np.int32)
    units = best, judged
    _cells(places, key, group, rows, truths, units, present, counts, first, absent_too)
    summed = np.cumsum(counts[:, :-1], axis=1).reshape(*shape, n_scores)
    return present, summed, first.reshape(*shape, n_scores, n_first)


# Documents ordered by majority of the runs (Condorcet fusion).


@inner
def _loses(rank: Array, one: int, other: int) -> bool:
    """Check that more runs rank the second candidate above the first than the reverse."""
    votes = 0
    for run in range(rank.shape[1]):
        if rank[other, run] < rank[one, run]:
            votes += 1
        elif rank[one, run] < rank[other, run]:
            votes -= 1
    return votes > 0


@kernel
def majority_order(rank: I32, start: I64) -> Array:
    """Order the candidates of each query so that none loses to its successor.

    A candidate beats another one if more runs rank it higher. That relation can be cyclic; merging
    sorted halves yields an order in which every candidate is at least as good as its successor
    (Montague and Aslam, Condorcet fusion, CIKM 2002, section 3.1). Candidates start in descending
    order of their places, so ties and cycles always end in the same order.

    Args:
        rank: int32 [m, runs], rank of each candidate in each run; large if missing from a run.
        start: int64 [q + 1], offsets of the candidates of each query.

    Returns:
        place of each candidate within its query from 0, int64 [m].
    """
    place = np.empty(rank.shape[0], np.int64)
    n = 0
    for query in range(start.size - 1):
        n = max(n, start[query + 1] - start[query])
    order = np.empty(n, np.int64)
    merged = np.empty(n, np.int64)
    for query in range(start.size - 1):
        first, size = start[query], start[query + 1] - start[query]
        for i in range(size):
            order[i] = first + size - 1 - i
        width = 1
        while width < size:
            for low in range(0, size, 2 * width):
                middle, high = min(low + width, size), min(low + 2 * width, size)
                left, right = low, middle
                for to in range(low, high):
                    if right == high or (
                        left < middle and not _loses(rank, order[left], order[right])
                    ):
                        merged[to] = order[left]
                        left += 1
                    else:
                        merged[to] = order[right]
                        right += 1
            for i in range(size):
                order[i] = merged[i]
            width *= 2
        for i in range(size):
            place[order[i]] = i
    return place


# Isotonic regression by pool adjacent violators, one pass with a stack of blocks. Source: M. Ayer,
# H. D. Brunk, G. M. Ewing, W. T. Reid, E. Silverman, "An empirical distribution function for
# sampling with incomplete information" (1955).


@kernel
def pooled_blocks(total: F64, weight: F64) -> tuple[Array, Array, Array]:
    """Blocks of an isotonic fit, whose means never fall.

    Args:
        total: float64 [n], sum of the fitted values, at each place.
        weight: float64 [n], above 0, weight of that sum.

    Returns:
        ends of blocks, int64 [b]; their sums and weights, float64 [b] each.
    """
    sums, weights = np.empty(total.size), np.empty(total.size)
    stop = np.empty(total.size, np.int64)
    n = 0
    for i in range(total.size):
        sums[n] = total[i]
        weights[n] = weight[i]
        stop[n] = i + 1
        n += 1
        while n > 1 and sums[n - 2] * weights[n - 1] >= sums[n - 1] * weights[n - 2]:
            sums[n - 2] += sums[n - 1]
            weights[n - 2] += weights[n - 1]
            stop[n - 2] = stop[n - 1]
            n -= 1
    return stop[:n], sums[:n], weights[:n]
