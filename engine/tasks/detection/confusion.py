"""Confusion matrix: true positives on the diagonal, leftovers matched across labels, rest null."""

from __future__ import annotations

import numpy as np
import polars as pl

from ...kernels.confusion_cells import confusion_cells
from ...schemas.results import empty_frame, frame_schema
from ...tally.ranked_view import RankedView
from .settings import Settings


def confusion_frame(
    view: RankedView, settings: Settings, slice_name: str | None, group_names: list[str]
) -> pl.DataFrame:
    """Build the ``confusion`` frame of one view.

    Args:
        view: ranked view with confusion pairs.
        slice_name: the slice column, None for the whole set.
        group_names: names of the view's groups.
    """
    labels, crossed = view.labels, view.crossed
    if crossed is None or len(labels) == 0 or view.n_groups == 0:
        return empty_frame("confusion", label=labels.dtype)
    at = [view.tally.variants.threshold_index(iou) for iou in settings.spot_ious]
    tp, fp = (counts[:, :, 0, at] for counts in view.counts(settings.score_thresholds))
    n = crossed.datum.size
    end, (actual, predicted, iou, score, count) = confusion_cells(
        (crossed.actual, crossed.predicted, crossed.threshold, crossed.scores),
        np.zeros(n, np.int32) if view.group is None else view.group[crossed.datum],
        np.ones(n, np.int64) if view.weights is None else view.weights[crossed.datum],
        np.array([settings.told(iou) for iou in settings.spot_ious]),
        np.asarray(settings.score_thresholds),
        (tp, fp, view.positives[:, :, 0, None, None] - tp),
    )
    blank = pl.Series([None], dtype=labels.dtype)
    values = pl.concat([labels.frame["label_value"], blank.alias("label_value")])
    group = np.repeat(np.arange(end.size, dtype=np.uint32), np.diff(end, prepend=0))
    made = {
        "actual": values.gather(pl.Series(actual)),
        "predicted": values.gather(pl.Series(predicted)),
        "iou_threshold": iou,
        "score_threshold": score,
        "slice_value": pl.Series(group_names or [None], dtype=pl.String).gather(pl.Series(group)),
        "count": count,
    }
    constants: dict[str, str | None] = {"slice": slice_name}
    if len(labels.key_names) == 1:
        constants["label_key"] = labels.key_names[0]
    else:  # the key of whichever label is none past the last
        known = np.where(actual == len(labels), predicted, actual)
        made["label_key"] = labels.frame["label_key"].gather(pl.Series(known))
    return pl.DataFrame(made).select(
        pl.lit(constants[name], dtype=dtype).alias(name)
        if name in constants
        else pl.col(name).cast(dtype)
        for name, dtype in frame_schema("confusion", label=labels.dtype).items()
    )
