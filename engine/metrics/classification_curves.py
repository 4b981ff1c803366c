"""Curves of classification: at given score thresholds, and at every distinct score."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..tally.cells import Cells
from ..tally.scored_view import ScoredView
from .label_averages import metric, ratio, scored_rows

if TYPE_CHECKING:
    from ..tasks.classification.settings import Settings

Array = np.ndarray[Any, Any]


def _columns(
    tp: Array, fp: Array, positives: Array, every: Array, fill: float
) -> dict[str, Array | str | float | None]:
    """Columns of the curves frame from counts."""
    fn = positives - tp
    tn = every - tp - fp - fn
    return {
        "tp": tp,
        "fp": fp,
        "fn": fn,
        "tn": tn,
        "precision": ratio(tp, tp + fp, fill),
        "recall": ratio(tp, tp + fn, fill),
        "f1": ratio(2 * tp, 2 * tp + fp + fn, fill),
        "fpr": ratio(fp, fp + tn),
        "accuracy": ratio(tp + tn, every),
    }


def _at_thresholds(view: ScoredView, settings: Settings) -> list[Cells]:
    hits, others, strays = view.reached(settings.score_thresholds)
    rules = settings.rules
    fill = np.nan if rules.curve_undefined is None else rules.curve_undefined
    every = view.every[:, view.labels.key, None]
    if rules.curve_every_datum:
        every = view.known_datums[:, None, None]
    columns = _columns(hits, others + strays, view.positives[:, :, None], every, fill)
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
    found = view.points
    n_labels = view.shape[1]
    parts = []
    for s in np.flatnonzero(np.diff(found.start) > 0):
        g, k = divmod(int(s), n_labels)
        at = slice(found.start[s], found.start[s + 1])
        tp = np.r_[0.0, found.tp[at]]
        fp = np.r_[0.0, found.fp[at]]
        threshold = np.r_[np.nan, found.threshold[at]]
        positives, negatives = view.positives[g, k], view.negatives[g, k]
        if tp[-1] < positives or fp[-1] < negatives:  # datums that do not list the label
            tp, fp = np.r_[tp, positives], np.r_[fp, negatives]
            threshold = np.r_[threshold, np.nan]
        if choose is not None:
            kept = choose(tp, fp, settings)
            tp, fp, threshold = tp[kept], fp[kept], threshold[kept]
        parts.append((g, k, tp, fp, threshold))
    if not parts:
        return []
    sizes = [part[2].size for part in parts]
    group, label = (np.repeat([part[i] for part in parts], sizes) for i in (0, 1))
    tp, fp, threshold = (np.concatenate([part[i] for part in parts]) for i in (2, 3, 4))
    positives = view.positives[group, label]
    every = positives + view.negatives[group, label]
    columns = _columns(tp, fp, positives, every, np.nan)
    return [
        Cells(
            axes=("point",),
            shape=tp.shape,
            columns={**columns, "score_threshold": threshold},
            codes={"group": group, "label": label},
        )
    ]


def _corners(tp: Array, fp: Array, settings: Settings) -> Array:
    """Points that are not on a straight line between their neighbours, and the highest score."""
    keep = np.ones(tp.size, bool)
    if settings.thin_curves:
        keep[2:-1] = (np.diff(tp[1:], 2) != 0) | (np.diff(fp[1:], 2) != 0)
    return np.flatnonzero(keep)


def _tradeoff(tp: Array, fp: Array, settings: Settings) -> Array:
    """From the last point without a false positive to the first with every true one."""
    first = int(np.searchsorted(fp, 0.0, side="right")) - 1
    last = int(np.searchsorted(tp, tp[-1]))
    return np.arange(first, last + 1)


_curve = partial(metric, frame="curves", needs=("scores",), better="neither")


METRICS = (
    _curve(
        "PrecisionRecallCurve",
        "tp, fp, fn, tn and their ratios per label and score threshold; every scored label counts,"
        " not only the best.",
        "Valor metrics document, Precision-Recall Curves",
        _at_thresholds,
        params=("score_thresholds",),
    ),
    _curve(
        "ROCCurve",
        "False and true positive rate at every distinct score, from the point above all scores;"
        " thinned by points on straight lines unless thin_curves is false.",
        "scikit-learn metrics.roc_curve",
        partial(_at_scores, choose=_corners),
        params=("thin_curves",),
    ),
    _curve(
        "ScorePrecisionRecallCurve",
        "Precision and recall at every distinct score.",
        "scikit-learn metrics.precision_recall_curve",
        _at_scores,
    ),
    _curve(
        "DETCurve",
        "Detection error trade-off: false positive and false negative counts at distinct scores,"
        " between the first false positive and the last missed one.",
        "Martin et al. 1997; scikit-learn metrics.det_curve",
        partial(_at_scores, choose=_tradeoff),
    ),
)
