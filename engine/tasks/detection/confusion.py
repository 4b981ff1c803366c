"""Confusion matrix: true positives on the diagonal, leftovers matched across labels, rest null."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import polars as pl

from ...schemas.results import empty_frame, frame_schema
from ...tally.counts import Counts
from ...tally.view import RankedView
from .settings import Settings

Array = np.ndarray[Any, Any]

_BITS = 64


class _Cells(msgspec.Struct, frozen=True):
    """Cells of the matrices as one integer each, in the order the frame stands in.

    Axes are group, IoU threshold, actual, predicted, score threshold; the label one past the last
    stands for null, so unmatched cells come after matched ones.
    """

    n_groups: int
    n_ious: int
    n_labels: int
    n_scores: int

    @property
    def shape(self) -> tuple[int, ...]:
        beside = self.n_labels + 1
        return self.n_groups, self.n_ious, beside, beside, self.n_scores

    def key(self, group: Any, iou: Any, actual: Any, predicted: Any, score: Any) -> Array:
        """One int64 of the five codes."""
        parts = [np.asarray(part, np.int64) for part in (group, iou, actual, predicted, score)]
        key = parts[0]
        for part, length in zip(parts[1:], self.shape[1:], strict=True):
            key = key * length + part
        return key

    def codes(self, key: Array) -> list[Array]:
        """The five codes of each key."""
        found = []
        for length in self.shape[:0:-1]:
            key, code = np.divmod(key, length)
            found.append(code)
        return [key, *found[::-1]]


def _crossed(
    crossed: Counts, group: Array | None, weights: Array | None, cells: _Cells
) -> tuple[Array, Array]:
    """Meetings across labels: keys of their cells, and how many there are of each."""
    times = np.ones(crossed.datum.size, np.int64) if weights is None else weights[crossed.datum]
    groups = np.zeros(crossed.datum.size, np.int32) if group is None else group[crossed.datum]
    key = cells.key(groups, crossed.threshold, crossed.actual, crossed.predicted, 0)
    parts = []
    for w in range(crossed.scores.shape[0]):
        # Few distinct bit patterns: count those first, then spread each over its thresholds.
        patterns = (
            pl.DataFrame({"key": key, "bits": crossed.scores[w], "count": times, "in": groups >= 0})
            .filter("in", pl.col("bits") != 0, pl.col("count") > 0)
            .group_by("key", "bits")
            .agg(pl.col("count").sum())
        )
        bits = patterns["bits"].to_numpy()
        for k in range(min(_BITS, cells.n_scores - w * _BITS)):
            here = (bits >> np.uint64(k)) & np.uint64(1) != 0
            parts.append(
                patterns.filter(pl.Series(here)).select(
                    pl.col("key") + (w * _BITS + k), pl.col("count").cast(pl.Int64)
                )
            )
    summed = pl.concat(parts).group_by("key").agg(pl.col("count").sum())
    return summed["key"].to_numpy(), summed["count"].to_numpy()


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
    none = len(labels)
    cells = _Cells(view.n_groups, len(at), none, len(settings.score_thresholds))
    crossed_key, crossed_count = _crossed(view.crossed, view.group, view.weights, cells)
    group, iou, actual, predicted, score = cells.codes(crossed_key)
    np.subtract.at(fp, (group, predicted, iou, score), crossed_count)
    np.subtract.at(fn, (group, actual, iou, score), crossed_count)
    keys, counts = [crossed_key], [crossed_count]
    for table, is_actual, is_predicted in ((tp, True, True), (fp, False, True), (fn, True, False)):
        where = np.nonzero(table)
        g, label, t, s = where
        keys.append(
            cells.key(g, t, label if is_actual else none, label if is_predicted else none, s)
        )
        counts.append(table[where])
    key, count = np.concatenate(keys), np.concatenate(counts)
    order = np.argsort(key)
    group, iou, actual, predicted, score = cells.codes(key[order])
    frame = labels.frame
    blank = pl.Series([None], dtype=labels.dtype)
    values = pl.concat([frame["label_value"], blank.alias("label_value")])
    schema = frame_schema("confusion", label=labels.dtype)
    made = {
        "label_key": frame["label_key"].gather(np.where(actual == none, predicted, actual)),
        "actual": values.gather(actual),
        "predicted": values.gather(predicted),
        "iou_threshold": np.round(settings.spot_ious, 10)[iou],
        "score_threshold": np.asarray(settings.score_thresholds)[score],
        "slice": pl.Series([slice_name], dtype=pl.String).new_from_index(0, key.size),
        "slice_value": pl.Series(group_names or [None], dtype=pl.String).gather(group),
        "count": count[order],
    }
    return pl.DataFrame(made, schema_overrides=schema).cast(schema)  # type: ignore[arg-type]
