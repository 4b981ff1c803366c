"""Matching of classifications: labels predicted for a unit against the labels it truly has.

A unit is one datum under one label key. Its hard prediction is the label of the highest score,
ties going to the first row (scikit-learn's ``argmax``, Valor's smallest prediction id).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import frozen, kernel

Array = np.ndarray[Any, Any]

OTHER = 0
HIT = 1
STRAY = 2
N_OUTCOMES = 3


@kernel
def _outcomes(
    unit: Array,
    label: Array,
    score: Array,
    truth_start: Array,
    truth: Array,
    outcome: Array,
    hard: Array,
    hard_score: Array,
) -> None:
    """Outcome of every row, and the best row's label of every unit."""
    for i in range(label.size):
        u = unit[i]
        if truth_start.size:
            low, high = truth_start[u], truth_start[u + 1]
            found = OTHER  # of several labels, none being true is an answer as well
            for k in range(low, high):
                if truth[k] == label[i]:
                    found = HIT
        else:
            t = truth[u]
            found = HIT if t == label[i] else (STRAY if t < 0 else OTHER)
        outcome[i] = found
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
        unit: int32 [n], unit of each predicted row.
        label: int32 [n], its label.
        score: float64 [n].
        truth: int32 [u], true label of each unit, -1 for none; with ``truth_start`` int32 [m].
        truth_start: int64 [u + 1], CSR offsets of each unit's true labels, or None.
        want_hard: whether to find hard predictions; their arrays are empty otherwise.

    Returns:
        outcome uint8 [n]: 1 where the label is true, 0 where the unit has others (or, with
        ``truth_start``, none), 2 where it has none; hard prediction int32 [u], -1 without any row;
        its score float64 [u], NaN likewise.
    """
    n_units = truth.size if truth_start is None else truth_start.size - 1
    outcome = np.empty(label.size, np.uint8)
    hard = np.full(n_units if want_hard else 0, -1, np.int32)
    hard_score = np.full(hard.size, np.nan)
    _outcomes(
        frozen(unit, np.int32),
        frozen(label, np.int32),
        frozen(score, np.float64),
        frozen(np.zeros(0) if truth_start is None else truth_start, np.int64),
        frozen(truth, np.int32),
        outcome,
        hard,
        hard_score,
    )
    return outcome, hard, hard_score


@kernel
def _truth_ranks(
    unit: Array,
    label: Array,
    score: Array,
    outcome: Array,
    first_wins: bool,
    at: Array,
    true_score: Array,
    rank: Array,
    squared: Array,
    lost: Array,
) -> None:
    """Score, rank and squared error around the one true label of every unit."""
    for i in range(label.size):
        u = unit[i]
        if outcome[i] == 1:
            true_score[u] = score[i]
            at[u] = i
        value = 1.0 - score[i] if outcome[i] == 1 else score[i]
        # What rounding loses is kept (Knuth 1969), so that the order of rows leaves no trace.
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
    """What top-k accuracy, log loss and the Brier score need of every unit.

    Args:
        unit: int32 [n], unit of each predicted row.
        label: int32 [n], its label.
        score: float64 [n].
        outcome: uint8 [n], 1 where the label is the unit's true one.
        n_units: number of units; each has at most one true label.
        first_wins: of tied scores the first row ranks higher; otherwise the larger label code,
            as scikit-learn's ``top_k_accuracy_score`` has it.

    Returns:
        score of the true label float64 [u], NaN where it is not listed; its rank from 0, int32
        [u], meaningless there; sum over listed labels of (score - truth)^2, float64 [u].
    """
    true_score = np.full(n_units, np.nan)
    rank = np.zeros(n_units, np.int32)
    squared, lost = np.zeros((2, n_units))
    _truth_ranks(
        frozen(unit, np.int32),
        frozen(label, np.int32),
        frozen(score, np.float64),
        frozen(outcome, np.uint8),
        first_wins,
        np.full(n_units, -1, np.int64),
        true_score,
        rank,
        squared,
        lost,
    )
    return true_score, rank, squared + lost
