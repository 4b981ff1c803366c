"""Calibration of detections by their position and size in the image."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ....metrics.averages import ratio
from ....metrics.registry import Metric
from ....schemas.arrays import Array
from ....tally.cells import Cells, parameters
from ....tally.ranked_points import Binned, BoxBins
from ....tally.ranked_view import RankedView
from .calibration import BEYOND, KUEPPERS, NO_ROW, columns_of
from .members import present, present_keys

if TYPE_CHECKING:
    from ..settings import Settings


_TOLD = {"position": ("cx", "cy"), "size": ("width", "height"), "position and size": ()}
"""Bin variables in addition to the score, and the names of pairs of bins."""


def _placed(place: Array, by: str, bins: BoxBins) -> Array:
    """Bins of position, size or both, int64."""
    base = bins.boxes**2
    return {"position": place // base, "size": place % base}.get(by, place)


def _levels(view: RankedView, settings: Settings) -> list[tuple[str, Array, Binned]]:
    """Return axis, row mask and bins: per label, and per key with labels pooled."""
    at, n_scores = settings.pr_curve_iou_threshold, settings.box_bins.scores
    by_label = view.binned(at, n_scores)
    key, n_keys = view.labels.key, len(view.labels.key_names)
    group, label = np.divmod(by_label.segment, max(1, key.size))
    by_key = by_label.regrouped(group * n_keys + key[label], by_label.place, view.n_groups * n_keys)
    return [("label", present(view), by_label), ("key", present_keys(view), by_key)]


def _by(made: Binned, by: str, bins: BoxBins) -> Binned:
    return made.regrouped(made.segment, _placed(made.place, by, bins), made.n)


def _summed(of: Array, values: Array, n: int) -> Array:
    return np.bincount(of, values, minlength=n)


def _gaps(made: Binned, of: Array, n: int, least: int) -> tuple[Array, Array]:
    """Return mean gaps between score and precision over bins that count, and their rows.

    Args:
        of: int64 [k], number that each bin enters.
        n: how many numbers there are.
        least: minimum rows of a bin that counts.
    """
    rows = np.where(made.sums[:, 0] >= least, made.sums[:, 0], 0)
    counted = _summed(of, rows, n)
    total = _summed(of, rows * np.abs(made.right - made.score), n)
    return ratio(total, counted), counted


def _told(bins: BoxBins) -> str:
    return parameters(n_bins=bins.scores, box_bins=bins.boxes, least_in_bin=bins.least)


def _error(view: RankedView, settings: Settings) -> list[Cells]:
    bins, cells = settings.box_bins, []
    for axis, keep, every in _levels(view, settings):
        for by in _TOLD:
            made = _by(every, by, bins)
            value, counted = _gaps(made, made.segment, made.n, bins.least)
            value[made.beyond] = np.nan
            why = np.full(made.n, f"no bin with {bins.least} predictions that count", object)
            why[_summed(made.segment, made.sums[:, 0], made.n) == 0] = NO_ROW
            why[made.beyond] = BEYOND
            cells.append(
                Cells(
                    axes=("group", axis),
                    shape=keep.shape,
                    keep=keep,
                    columns={
                        "value": value.reshape(keep.shape),
                        "statistic": by,
                        "support": counted.reshape(keep.shape),
                        "parameters": _told(bins),
                        **columns_of(settings, axis),
                    },
                    reason=why.reshape(keep.shape),
                )
            )
    return cells


def _reliability(view: RankedView, settings: Settings) -> list[Cells]:
    bins, cells = settings.box_bins, []
    n_places = bins.boxes**2
    for axis, keep, every in _levels(view, settings):
        shape = (*keep.shape, n_places)
        for by, names in _TOLD.items():
            if not names:
                continue
            made = _by(every, by, bins)
            of, n = made.segment * n_places + made.place, made.n * n_places
            rows = _summed(of, made.sums[:, 0], n)
            total = np.repeat(_summed(made.segment, made.sums[:, 0], made.n), n_places)
            told = {
                "ece": _gaps(made, of, n, bins.least)[0],
                "confidence": ratio(_summed(of, made.sums[:, 0] * made.score, n), rows),
                "precision": ratio(_summed(of, made.sums[:, 1], n), rows),
                "share": ratio(rows, total),
            }
            beyond = np.repeat(made.beyond, n_places)
            why = np.where(beyond, BEYOND, f"no bin with {bins.least} predictions that count")
            where = [
                json.dumps({names[0]: x / bins.boxes, names[1]: y / bins.boxes})
                for x in range(bins.boxes)
                for y in range(bins.boxes)
            ]
            cells += [
                Cells(
                    axes=("group", axis, "level"),
                    shape=shape,
                    keep=(rows > 0).reshape(shape),
                    columns={
                        "value": np.where(
                            beyond & (statistic in ("ece", "confidence")), np.nan, value
                        ).reshape(shape),
                        "statistic": statistic,
                        "support": rows.reshape(shape),
                        "parameters": np.array(where),
                        **columns_of(settings, axis),
                    },
                    reason=why.reshape(shape),
                )
                for statistic, value in told.items()
            ]
    return cells


_metric = partial(
    Metric,
    task="detection",
    frame="metrics",
    needs=("pr_curve_iou_threshold", "places"),
    params=("pr_curve_iou_threshold", "n_bins", "box_bins", "least_in_bin"),
    averages=("micro",),
    source=KUEPPERS,
)


METRICS = (
    _metric(
        name="BoxECE",
        better="lower",
        interval="recentred",
        definition="Expected calibration error of detections by score and box: mean of |precision -"
        " mean score| over bins of score and position (centre), of score and size, and of score,"
        " position and size, as shares of the image, weighed by the predictions in each; bins of"
        " fewer than least_in_bin are left out.",
        formula=r"\frac{\sum_b n_b \left|\text{precision}_b - \text{conf}_b\right|}{\sum_b n_b}",
        compute=_error,
    ),
    _metric(
        name="BoxReliability",
        better="neither",
        definition="The places behind BoxECE: mean score (confidence), precision, share of the"
        " predictions and expected calibration error of each bin of position, and of size, which"
        " begins at what parameters says.",
        formula=r"\text{conf}_b = \frac{1}{n_b} \sum_{p \in b} s_p, \quad \text{precision}_b ="
        r" \frac{\text{tp}_b}{n_b}, \quad \text{share}_b = \frac{n_b}{n}",
        compute=_reliability,
    ),
)
