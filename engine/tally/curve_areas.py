"""Areas under the curves of a view: average precision, partial ROC areas, areas datum by datum."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..kernels.partial_area import area_in_all, areas_onward, no_area
from ..kernels.partition import partition
from ..kernels.point_precision import no_precision, precision_onward
from ..kernels.roc import wins
from ..kernels.score_points import points
from ..kernels.sorting import sort_short
from ..schemas.arrays import Array
from .sorted_scores import HIT, N_OUTCOMES, OTHER, Sorted

if TYPE_CHECKING:
    from .scored_view import ScoredView


def _over(top: Array, bottom: Array, fill: float) -> Array:
    out = np.full(np.shape(bottom), fill)
    np.divide(top, bottom, out=out, where=bottom > 0)
    return out


def average_precision(view: ScoredView) -> Array:
    """Return the sum over distinct scores of precision times the gain in recall, [group, label].

    Datums that do not list the label come last, all at once, as in the ROC curve.
    """
    hits, positives, negatives = (
        column.ravel() for column in (view.listed[0], view.positives, view.negatives)
    )
    carried = no_precision(hits.size)
    for found in view.point_blocks():
        precision_onward(found.start, found.tp, found.fp, carried)
    return with_unlisted(carried.total + carried.lost, hits, positives, negatives).reshape(
        view.shape
    )


def with_unlisted(total: Array, hits: Array, positives: Array, negatives: Array) -> Array:
    """Return the average precision of curves, float64 [s]; NaN without positives.

    Args:
        total: float64 [s], precision summed over the listed positives.
        hits: float64 [s], positives that are listed.
        positives: float64 [s].
        negatives: float64 [s].
    """
    total = total + (positives - hits) * _over(positives, positives + negatives, 0.0)
    return _over(total, positives, np.nan)


def delong_variance(view: ScoredView) -> Array:
    """Return DeLong's variance of each label's area under the ROC curve, [group, label].

    NaN if a class has fewer than two members, if some datums do not list the label, and with
    weights. Source: E. R. DeLong et al. (1988); placements of sorted scores as in X. Sun, W. Xu,
    "Fast implementation of DeLong's algorithm" (2014).
    """
    out = np.full(view.shape, np.nan)
    if view.unit_weight is not None:
        return out
    found = view.ordered_rows.sorted
    variances = np.full(found.start.size // N_OUTCOMES, np.nan)
    sides = zip(*found.bounds(HIT), *found.bounds(OTHER), strict=True)
    for s, (a, b, c, d) in enumerate(sides):
        positives, negatives = found.score[a:b], found.score[c:d]
        if min(positives.size, negatives.size) > 1:
            won = [_placements(positives, negatives), 1 - _placements(negatives, positives)]
            variances[s] = sum(float(one.var(ddof=1)) / one.size for one in won)
    hits, others, _ = view.listed
    complete = (hits == view.positives) & (others == view.negatives)
    return np.where(complete, view.spread(variances, np.nan), np.nan)


def _placements(scores: Array, others: Array) -> Array:
    """Return the share of ``others`` below each score, ties counting half; both ascending."""
    below, upto = (np.searchsorted(others, scores, side) for side in ("left", "right"))
    placed: Array = (below + upto) / 2 / others.size
    return placed


def partial_area(view: ScoredView, limit: float) -> Array:
    """Return the area under each ROC curve up to a false-positive rate, [group, label].

    NaN if a class is missing or the label is not scored.

    Args:
        limit: the false-positive rate, in (0, 1].
    """
    assert view.scored is not None
    positives, negatives = view.positives.ravel(), view.negatives.ravel()
    carried = no_area(positives, negatives)
    for found in view.point_blocks():
        areas_onward(found.start, found.tp, found.fp, positives, negatives, limit, carried)
    area = area_in_all(positives, negatives, limit, carried).reshape(view.shape)
    return np.where(view.scored.labels, area, np.nan)


def sample_areas(view: ScoredView) -> tuple[Array, Array]:
    """Return ROC area and average precision per unit over labels of its key, float64 [u].

    True labels are the positives, all others of the key the negatives, unlisted ones last.
    NaN if a unit has no member of either class; average precision only needs a true label.
    """
    assert view.scored is not None
    found: tuple[Array, Array] = view.scored.shared("sample_areas", lambda: _by_unit(view))
    return found


def _by_unit(view: ScoredView) -> tuple[Array, Array]:
    units, scored = view.units, view.scored
    assert scored is not None
    n = len(units)
    every = np.arange(n, dtype=np.int32)
    start, score, _ = partition(
        scored.parts, scored.outcome, None, scored.unit_codes, every, (n, 1, N_OUTCOMES)
    )
    view.over(start, lambda first, last: sort_short(start, first, last, score.size, score))
    rows = Sorted(start, score, None)
    width = np.bincount(view.labels.key, minlength=len(view.labels.key_names))
    of_key = width[np.zeros(n, np.int64) if units.key is None else units.key]
    positives = units.n_truths.astype(np.float64)
    negatives = of_key - positives
    hits, others = rows.sums(HIT), rows.sums(OTHER)
    missing, absent = positives - hits, negatives - others
    bounds = rows.bounds(HIT), rows.bounds(OTHER)
    won = wins(*bounds, score) / 2 + hits * absent + missing * absent / 2
    roc = _over(won, positives * negatives, np.nan)
    carried = no_precision(n)
    found_at, _, tp, fp = points(*bounds, score)
    precision_onward(found_at, tp, fp, carried)
    return roc, with_unlisted(carried.total + carried.lost, hits, positives, negatives)
