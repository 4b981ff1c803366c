"""Calibration of detections: whether a score of 0.8 is right four times in five."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ....metrics.registry import Metric
from ....metrics.thresholds import Bins, bins_by
from ....schemas.arrays import Array
from ....tally.cells import Cells, parameters
from ....tally.ranked_view import RankedView
from .members import present, present_keys
from .thresholds import curve_of

if TYPE_CHECKING:
    from ..settings import Settings


NO_ROW = "no prediction that counts"
BEYOND = "scores lie outside [0, 1]"
KUEPPERS = "Küppers et al. 2020, Multivariate Confidence Calibration for Object Detection (D-ECE)"


def _levels(view: RankedView, settings: Settings) -> list[tuple[str, Array, Bins]]:
    """Return axis, row mask and bins: per label, and per key with labels pooled."""
    n_bins = settings.n_bins
    return [
        (axis, keep, bins_by(curve_of(view, settings, pooled=pooled), n_bins))
        for axis, keep, pooled in (
            ("label", present(view), False),
            ("key", present_keys(view), True),
        )
    ]


def columns_of(settings: Settings, axis: str) -> dict[str, Any]:
    """Return the identifying columns of rows per label, or per key with labels pooled."""
    return {
        "average": None if axis == "label" else "micro",
        "iou_threshold": settings.told(settings.pr_curve_iou_threshold),
        "area": settings.areas[0][0],
        "max_detections": settings.cap,
    }


def _error(view: RankedView, settings: Settings, of: str) -> list[Cells]:
    return [
        Cells(
            axes=("group", axis),
            shape=keep.shape,
            keep=keep,
            columns={
                "value": getattr(bins, of).reshape(keep.shape),
                "support": bins.n.sum(axis=1).reshape(keep.shape),
                "parameters": parameters(n_bins=settings.n_bins),
                **columns_of(settings, axis),
            },
            reason=np.where(bins.n.sum(axis=1) > 0, BEYOND, NO_ROW).reshape(keep.shape),
        )
        for axis, keep, bins in _levels(view, settings)
    ]


def _reliability(view: RankedView, settings: Settings) -> list[Cells]:
    cells = []
    for axis, keep, bins in _levels(view, settings):
        shape = (*keep.shape, settings.n_bins)
        n = bins.n.reshape(shape)
        total = n.sum(axis=-1, keepdims=True)
        share = np.divide(n, total, out=np.full(shape, np.nan), where=total > 0)
        named = {"confidence": bins.score, "precision": bins.right, "share": share}
        cells += [
            Cells(
                axes=("group", axis, "score_threshold"),
                values={"score_threshold": [i / settings.n_bins for i in range(settings.n_bins)]},
                shape=shape,
                keep=n > 0,
                columns={
                    "value": value.reshape(shape),
                    "statistic": statistic,
                    "support": n,
                    **columns_of(settings, axis),
                },
                reason=BEYOND,
            )
            for statistic, value in named.items()
        ]
    return cells


_metric = partial(
    Metric,
    task="detection",
    frame="metrics",
    needs=("pr_curve_iou_threshold",),
    params=("pr_curve_iou_threshold", "n_bins"),
    averages=("micro",),
)


METRICS = (
    _metric(
        name="ECE",
        aliases=("D-ECE", "DECE"),
        better="lower",
        interval="recentred",
        definition="Expected calibration error of detections by score: mean over n_bins equal bins"
        " of |precision - mean score|, weighed by the predictions in each; per label, and micro"
        " over all predictions of a key.",
        formula=r"\sum_b \frac{n_b}{n} \left|\text{precision}_b - \text{conf}_b\right|",
        source=KUEPPERS,
        compute=partial(_error, of="expected"),
    ),
    _metric(
        name="MCE",
        better="lower",
        interval="recentred",
        definition="Maximum calibration error: the largest |precision - mean score| of any bin.",
        formula=r"\max_b \left|\text{precision}_b - \text{conf}_b\right|",
        source="Naeini et al. 2015, of detections as D-ECE",
        compute=partial(_error, of="largest"),
    ),
    _metric(
        name="Reliability",
        better="neither",
        definition="The bins behind ECE: mean score (confidence), precision and share of the"
        " predictions of each, which starts at score_threshold.",
        formula=r"\text{conf}_b = \frac{1}{n_b} \sum_{p \in b} s_p, \quad \text{precision}_b ="
        r" \frac{\text{tp}_b}{n_b}, \quad \text{share}_b = \frac{n_b}{n}",
        source=KUEPPERS,
        compute=_reliability,
    ),
)
