"""Curves of classification: at given score thresholds, and at every distinct score."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ....metrics.averages import ratio, scored_rows
from ....schemas.arrays import Array
from ....tally.cells import Cells
from ....tally.ranked_points import first_of, last_of, segment_of
from ....tally.scored_view import ScoredView
from .parts import metric

if TYPE_CHECKING:
    from ..settings import Settings


def _columns(
    tp: Array, fp: Array, positives: Array, rest: Array, fill: float
) -> dict[str, Array | str | float | None]:
    """Columns of the curves frame from counts; ``rest`` are all that are no positives."""
    fn = positives - tp
    tn = np.maximum(rest - fp, 0.0)
    return {
        "tp": tp,
        "fp": fp,
        "fn": fn,
        "tn": tn,
        "precision": ratio(tp, tp + fp, fill),
        "recall": ratio(tp, positives, fill),
        "f1": ratio(2 * tp, 2 * tp + fp + fn, fill),
        "fpr": ratio(fp, np.maximum(rest, fp)),
        "accuracy": ratio(tp + tn, positives + rest),
    }


def _at_thresholds(view: ScoredView, settings: Settings) -> list[Cells]:
    hits, others, strays = view.reached(settings.score_thresholds)
    rules = settings.rules
    fill = np.nan if rules.curve_undefined is None else rules.curve_undefined
    rest = view.rest(of_datums=rules.curve_every_datum)
    columns = _columns(hits, others + strays, view.positives[:, :, None], rest[:, :, None], fill)
    if rules.curve_f1_needs_hits:
        columns["f1"] = np.where(hits == 0, fill, columns["f1"])  # type: ignore[arg-type]
    keep = scored_rows(view)
    return [
        Cells(
            axes=("group", "label", "score_threshold"),
            values={"score_threshold": settings.score_thresholds},
            shape=hits.shape,
            keep=keep[:, :, None],
            columns=columns,
        )
    ]


def _at_scores(view: ScoredView, settings: Settings, choose: Any = None) -> list[Cells]:
    """Every distinct score, highest first; the point above all scores has no threshold."""
    curves = _complete(view)
    if not curves.segment.size:
        return []
    keep = slice(None) if choose is None else choose(curves, settings)
    segment = curves.place[keep]
    tp, fp, threshold = curves.tp[keep], curves.fp[keep], curves.threshold[keep]
    group, label = np.divmod(segment, view.shape[1])
    positives = view.positives[group, label]
    columns = _columns(tp, fp, positives, view.negatives[group, label], np.nan)
    return [
        Cells(
            axes=("point",),
            shape=tp.shape,
            columns={**columns, "score_threshold": threshold},
            codes={"group": group, "label": label},
        )
    ]


class _Curves(NamedTuple):
    """Points of all curves, from the one above all scores to the one that includes all rows.

    Attributes:
        start: int64 [c + 1], CSR offsets.
        segment: int64 [c], group * labels + label of each curve.
        place: int64 [m], same for each point.
        threshold: float64 [m], NaN for points without a score.
        tp: float64 [m], ascending within a curve.
        fp: float64 [m], ascending within a curve.
    """

    start: Array
    segment: Array
    place: Array
    threshold: Array
    tp: Array
    fp: Array


def _complete(view: ScoredView) -> _Curves:
    """Return points at every distinct score, plus the two end points without a score."""
    found = view.points
    size = np.diff(found.start)
    segment = np.flatnonzero(size)
    last = found.start[segment + 1] - 1
    positives, negatives = view.positives.ravel()[segment], view.negatives.ravel()[segment]
    # Datums that do not list the label come last, all at once.
    short = (found.tp[last] < positives) | (found.fp[last] < negatives)
    start = np.r_[0, np.cumsum(size[segment] + 1 + short)]
    first, end = start[:-1], start[1:][short] - 1
    scored = np.ones(start[-1], bool)
    scored[first] = scored[end] = False
    columns = []
    for points, above, below in (
        (found.threshold, np.nan, np.full(end.size, np.nan)),
        (found.tp, 0.0, positives[short]),
        (found.fp, 0.0, negatives[short]),
    ):
        column = np.empty(start[-1])
        column[first], column[end], column[scored] = above, below, points
        columns.append(column)
    return _Curves(start, segment, np.repeat(segment, np.diff(start)), *columns)


def _corners(curves: _Curves, settings: Settings) -> Array:
    """Points that are not on a straight line between their neighbours, and the highest score."""
    keep = np.ones(curves.tp.size, bool)
    if settings.thin_curves:
        keep[1:-1] = (np.diff(curves.tp, 2) != 0) | (np.diff(curves.fp, 2) != 0)
        keep[curves.start[:-1]] = keep[curves.start[:-1] + 1] = keep[curves.start[1:] - 1] = True
    return keep


def _tradeoff(curves: _Curves, settings: Settings) -> Array:
    """From the last point without a false positive to the first with every true one."""
    start = curves.start
    of = segment_of(start)
    first = last_of(start, curves.fp <= 0)
    last = first_of(start, curves.tp >= curves.tp[start[1:] - 1][of])
    place = np.arange(curves.tp.size)
    return (place >= first[of]) & (place <= last[of])


_curve = partial(metric, frame="curves", needs=("scores",), better="neither")


METRICS = (
    _curve(
        "PrecisionRecallCurve",
        "tp, fp, fn, tn and their ratios per label and score threshold; every scored label counts,"
        " not only the best.",
        "Valor metrics document, Precision-Recall Curves",
        _at_thresholds,
        params=("score_thresholds",),
        formula=r"P(\tau) = \frac{\text{tp}(\tau)}{\text{tp}(\tau) + \text{fp}(\tau)}, \quad"
        r" R(\tau) = \frac{\text{tp}(\tau)}{\text{tp}(\tau) + \text{fn}(\tau)}",
    ),
    _curve(
        "ROCCurve",
        "False and true positive rate at every distinct score, from the point above all scores;"
        " thinned by points on straight lines unless thin_curves is false.",
        "scikit-learn metrics.roc_curve",
        partial(_at_scores, choose=_corners),
        params=("thin_curves",),
        formula=r"\left(\frac{\text{fp}(\tau)}{n_-}, \frac{\text{tp}(\tau)}{n_+}\right)",
    ),
    _curve(
        "ScorePrecisionRecallCurve",
        "Precision and recall at every distinct score.",
        "scikit-learn metrics.precision_recall_curve",
        _at_scores,
        formula=r"P(\tau) = \frac{\text{tp}(\tau)}{\text{tp}(\tau) + \text{fp}(\tau)}, \quad"
        r" R(\tau) = \frac{\text{tp}(\tau)}{\text{tp}(\tau) + \text{fn}(\tau)}",
    ),
    _curve(
        "DETCurve",
        "Detection error trade-off: false positive and false negative counts at distinct scores,"
        " between the first false positive and the last missed one.",
        "Martin et al. 1997; scikit-learn metrics.det_curve",
        partial(_at_scores, choose=_tradeoff),
        formula=r"\left(\frac{\text{fp}(\tau)}{n_-}, \frac{\text{fn}(\tau)}{n_+}\right)",
    ),
)
