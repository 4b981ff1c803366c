"""Rank correlation of predictions and targets."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ....kernels.sums import agreement
from ....schemas.arrays import Array
from ....tally.cells import Cells
from ....tally.paired_values import Paired, PairedView
from .parts import (
    CONSTANT,
    FLAT,
    NUMBERS,
    ONE_ROW,
    cells,
    geometric,
    metric,
    times_drawn,
    weighted_sum,
)

if TYPE_CHECKING:
    from ..settings import Settings


def _midranks(values: Array, weight: Array) -> Array:
    """Return the weight below each value plus half of its ties: with weights 1, ranks minus 1/2."""
    distinct, place = np.unique(values, return_inverse=True)
    of = np.bincount(place, weight, minlength=distinct.size)
    ranks: Array = (np.cumsum(of) - of / 2)[place]
    return ranks


def spearman(target: Array, predicted: Array, weight: Array | None) -> float:
    """Compute Pearson's correlation of ranks; NaN if one side is constant.

    Args:
        target: float64 [n].
        predicted: float64 [n].
        weight: float64 [n], above 0; None if equal.
    """
    # In one order whatever that of the rows was, so that sums of fractions end alike.
    weight = np.ones(target.size) if weight is None else weight
    order = np.lexsort((weight, predicted, target))
    weight = weight[order]
    ours, theirs = (_midranks(side[order], weight) for side in (predicted, target))
    total = weighted_sum(weight, None)
    ours, theirs = (ranks - total / 2 for ranks in (ours, theirs))  # the mean of all ranks
    spread = weighted_sum(ours**2, weight), weighted_sum(theirs**2, weight)
    if 0 in spread:
        return math.nan
    together = weighted_sum(ours * theirs, weight)
    return max(-1.0, min(1.0, together / float(geometric(*spread))))


class _Pairs:
    """Weight of the pairs of rows, by their order in two numbers.

    Attributes:
        balance: weight of concordant minus discordant pairs.
        apart: weight of pairs that differ in the target, and in the prediction.
    """

    def __init__(self, target: Array, predicted: Array, weight: Array | None) -> None:
        weight = np.ones(target.size) if weight is None else weight
        order = np.lexsort((weight, predicted, target))
        weight = weight[order]
        ranks = [np.unique(side[order], return_inverse=True)[1] for side in (target, predicted)]
        self.balance = agreement(ranks[0], ranks[1], weight)
        whole = float(weight.sum()) ** 2
        tied = (float((np.bincount(rank, weight) ** 2).sum()) for rank in ranks)
        flat = [int(rank.max()) == 0 for rank in ranks]
        self.apart = [
            0.0 if same else (whole - one) / 2 for one, same in zip(tied, flat, strict=True)
        ]


def kendall(target: Array, predicted: Array, weight: Array | None) -> float:
    """Compute Kendall's tau-b; NaN if one side is constant."""
    pairs = _Pairs(target, predicted, weight)
    if 0 in pairs.apart:
        return math.nan
    tau = pairs.balance / float(geometric(*pairs.apart))
    return max(-1.0, min(1.0, tau))


def c_index(target: Array, predicted: Array, weight: Array | None) -> float:
    """Share of pairs of different targets that are in order, ties in the prediction half."""
    pairs = _Pairs(target, predicted, weight)
    if not pairs.apart[0]:
        return math.nan
    return max(0.0, min(1.0, 0.5 + pairs.balance / pairs.apart[0] / 2))


OfSides = Callable[[Array, Array, "Array | None"], float]


def _of_cells(number: OfSides, reason: str) -> Any:
    def compute(view: PairedView, settings: Settings) -> list[Cells]:
        value = view.by_cell(lambda rows, weight: number(rows.target, rows.prediction, weight))
        return cells(view, value, np.where(view.rows < 2, ONE_ROW, reason))

    return compute


def _within_groups(rows: Paired, weight: Array | None) -> float:
    """Mean of Spearman over groups in which neither side is constant."""
    group = rows.beside["group_id"]
    order = np.argsort(group, kind="stable")
    edges = np.flatnonzero(np.diff(group[order])) + 1
    times = times_drawn(rows, weight)
    found = [
        (
            spearman(
                rows.target[some], rows.prediction[some], None if weight is None else weight[some]
            ),
            weighted_sum(times[some], None) / some.size,
        )
        for some in np.split(order, edges)
        if some.size > 1
    ]
    known = np.array([one for one in found if not math.isnan(one[0])]).reshape(-1, 2)
    if not known.size:
        return math.nan
    return weighted_sum(known[:, 0], known[:, 1]) / weighted_sum(known[:, 1], None)


def _by_group(view: PairedView, settings: Settings) -> list[Cells]:
    return cells(view, view.by_cell(_within_groups), "no group with different values on each side")


_CORRELATION = {"better": "higher", "range": (-1.0, 1.0)}

METRICS = (
    metric(
        "Spearman",
        "Pearson of ranks, ties by their mean rank; with weights, ranks are the weight below and"
        " half of that of ties",
        "scipy.stats.spearmanr",
        _of_cells(spearman, FLAT),
        aliases=("spearmanr", "SpearmanCorrelation"),
        formula=r"\frac{\sum_i (a_i - \bar{a}) (c_i - \bar{c})}{\sqrt{\sum_i (a_i - \bar{a})^2"
        r" \sum_i (c_i - \bar{c})^2}}",
        **_CORRELATION,
    ),
    metric(
        "Kendall",
        "(pairs in the same order - pairs in opposite orders) / square root of (pairs of different"
        " targets * pairs of different predictions), tau-b; a pair weighs the product of both",
        "scipy.stats.kendalltau",
        _of_cells(kendall, FLAT),
        aliases=("kendalltau", "KendallTau"),
        formula=r"\frac{n_c - n_d}{\sqrt{n_t\, n_p}}",
        **_CORRELATION,
    ),
    metric(
        "CIndex",
        "share of the pairs of different targets whose predictions are in the same order, equal"
        " ones half; every target counts as observed",
        "Harrell et al. 1982, Evaluating the yield of medical tests",
        _of_cells(c_index, CONSTANT),
        aliases=("c_index", "ConcordanceIndex", "concordance_index"),
        better="higher",
        range=(0.0, 1.0),
        formula=r"\frac{n_c + \tfrac{1}{2} n_0}{n_t}",
    ),
    metric(
        "GroupSpearman",
        "mean of Spearman within each group of the column group_id, over groups in which neither"
        " side is constant",
        "Spearman 1904, The proof and measurement of association between two things",
        _by_group,
        aliases=("SpearmanWithin",),
        needs=(*NUMBERS, "group_id"),
        reads=("group_id",),
        formula=r"\frac{1}{|G|} \sum_{g \in G} \text{Spearman}_g",
        **_CORRELATION,
    ),
)
