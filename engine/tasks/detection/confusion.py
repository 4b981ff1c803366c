"""Confusion matrix: true positives on the diagonal, leftovers matched across labels, the rest null."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from ...schemas.results import empty_frame, frame_schema
from ...tally.counts import Counts
from ...tally.view import RankedView
from .settings import Settings

Array = np.ndarray[Any, Any]

_BITS = 64
_KEYS = ("group", "iou", "score", "actual", "predicted")


def _crossed(crossed: Counts, group: Array | None, n_scores: int) -> pl.DataFrame:
    """Meetings across labels, counted by group, thresholds and labels."""
    groups = np.zeros(crossed.datum.size, np.int32) if group is None else group[crossed.datum]
    base = {
        "group": groups,
        "iou": crossed.threshold,
        "actual": crossed.actual,
        "predicted": crossed.predicted,
    }
    parts = []
    for w in range(crossed.scores.shape[0]):
        # Few distinct bit patterns: count those first, then spread each over its thresholds.
        patterns = (
            pl.DataFrame({**base, "bits": crossed.scores[w]})
            .filter(pl.col("bits") != 0, pl.col("group") >= 0)
            .group_by(*base, "bits")
            .len("count")
        )
        bits = patterns["bits"].to_numpy()
        for k in range(w * _BITS, min((w + 1) * _BITS, n_scores)):
            here = (bits >> np.uint64(k - w * _BITS)) & np.uint64(1) != 0
            parts.append(
                patterns.filter(pl.Series(here)).select(
                    *base, pl.lit(k, pl.Int64).alias("score"), pl.col("count").cast(pl.Int64)
                )
            )
    return pl.concat(parts).group_by(_KEYS).agg(pl.col("count").sum()).select(*_KEYS, "count")


def _dense(counts: Array, actual: bool, predicted: bool) -> pl.DataFrame:
    """Counts [group, label, iou, score] as rows; the label stands as actual, predicted or both."""
    g, label, iou, score = np.nonzero(counts)
    codes = pl.Series(label.astype(np.int32))
    none = pl.Series([None], dtype=pl.Int32).new_from_index(0, len(codes))
    return pl.DataFrame(
        {
            "group": g.astype(np.int32),
            "iou": iou.astype(np.int32),
            "score": score.astype(np.int64),
            "actual": codes if actual else none,
            "predicted": codes if predicted else none,
            "count": counts[g, label, iou, score].astype(np.int64),
        }
    ).select(*_KEYS, "count")


def confusion_frame(
    view: RankedView, settings: Settings, slice_name: str | None, group_names: list[str]
) -> pl.DataFrame:
    """The ``confusion`` frame of one view.

    Args:
        view: ranked view with confusion events.
        settings: thresholds.
        slice_name: the slice column, None for the whole set.
        group_names: names of the view's groups.
    """
    labels = view.labels
    if view.crossed is None or len(labels) == 0:
        return empty_frame("confusion", label=labels.dtype)
    at = [view.tally.variants.threshold_index(iou) for iou in settings.spot_ious]
    tp, fp = (counts[:, :, 0, at] for counts in view.counts(settings.score_thresholds))
    fn = view.positives[:, :, 0, None, None] - tp
    crossed = _crossed(view.crossed, view.group, len(settings.score_thresholds))
    rows = [column.to_numpy() for column in crossed.select(_KEYS)]
    n = crossed["count"].to_numpy()
    np.subtract.at(fp := fp.copy(), (rows[0], rows[4], rows[1], rows[2]), n)
    np.subtract.at(fn, (rows[0], rows[3], rows[1], rows[2]), n)
    counted = pl.concat(
        [
            _dense(tp, actual=True, predicted=True),
            crossed.cast({"actual": pl.Int32, "predicted": pl.Int32, "group": pl.Int32}),
            _dense(fp, actual=False, predicted=True),
            _dense(fn, actual=True, predicted=False),
        ]
    ).sort(_KEYS, nulls_last=True)
    table = labels.frame
    some = counted.select(pl.coalesce("actual", "predicted"))["actual"]
    ious = pl.Series([round(iou, 10) for iou in settings.spot_ious], dtype=pl.Float64)
    groups = pl.Series(group_names or [None], dtype=pl.String)
    frame = pl.DataFrame(
        {
            "label_key": table["label_key"].gather(some),
            "actual": table["label_value"].gather(counted["actual"]),
            "predicted": table["label_value"].gather(counted["predicted"]),
            "iou_threshold": ious.gather(counted["iou"]),
            "score_threshold": pl.Series(settings.score_thresholds).gather(counted["score"]),
            "slice": pl.Series([slice_name], dtype=pl.String).new_from_index(0, counted.height),
            "slice_value": groups.gather(counted["group"]),
            "count": counted["count"],
        }
    )
    return frame.cast(frame_schema("confusion", label=labels.dtype))  # type: ignore[arg-type]
